/** What of WebAssembly this package uses; the types of Node have only its names. */
declare namespace WebAssembly {
  type Imports = Record<string, Record<string, (...values: number[]) => unknown>>;
  class Module {
    constructor(bytes: Uint8Array);
    static imports(module: Module): { module: string; name: string }[];
  }
  class Instance {
    constructor(module: Module, imports: Imports);
    readonly exports: unknown;
  }
  interface Memory {
    readonly buffer: ArrayBuffer;
  }
}
