/** What runs a call; `module.ts` has the real one. */
interface Callable {
  readonly bytes: number;
  call(text: string): string;
}

/** An instance and the sets it has loaded, so that another instance can be given them after a trap or when memory has grown too far. */
export class Sets {
  readonly #module: WebAssembly.Module;
  readonly #make: (module: WebAssembly.Module) => Callable;
  readonly #memoryBytes: number;
  readonly #sources = new Map<string, string>();
  #instance: Callable;

  constructor(module: WebAssembly.Module, memoryBytes: number, make: (module: WebAssembly.Module) => Callable) {
    this.#module = module;
    this.#memoryBytes = memoryBytes;
    this.#make = make;
    this.#instance = make(module);
  }

  call(op: string, set: string | undefined, text: string): string {
    if (op === 'unload' && set !== undefined) this.#sources.delete(set);
    try {
      const answer = this.#instance.call(text);
      if (op === 'load' && set !== undefined) this.#sources.set(set, text);
      if (this.#instance.bytes > this.#memoryBytes) this.#renew();
      return answer;
    } catch (error) {
      this.#renew();
      throw error;
    }
  }

  /** A set that traps while it loads is let go: its decisions deny, those of the others go on. */
  #renew(): void {
    this.#instance = this.#make(this.#module);
    for (const [id, text] of this.#sources) {
      try {
        this.#instance.call(text);
      } catch {
        this.#sources.delete(id);
        this.#renew();
        return;
      }
    }
  }
}
