import { webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The built module; `npm run build` in this package makes it anew, and its hash stands beside it. */
export const moduleFile = fileURLToPath(new URL('../wasm/policy_engine.wasm', import.meta.url));

export function compileModule(): WebAssembly.Module {
  return new WebAssembly.Module(readFileSync(moduleFile));
}

interface Exports {
  memory: WebAssembly.Memory;
  engine_alloc(length: number): number;
  engine_free(pointer: number, length: number): void;
  engine_call(pointer: number, length: number): bigint;
}

/** One instance: text in, text out. A trap ends it, whatever it was doing; what it kept is gone with it. */
export class Instance {
  readonly #exports: Exports;
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder();

  constructor(module: WebAssembly.Module) {
    const random = (pointer: number, length: number) => {
      webcrypto.getRandomValues(new Uint8Array(this.#exports.memory.buffer, pointer, length));
    };
    const imports: WebAssembly.Imports = {};
    for (const { module: from, name } of WebAssembly.Module.imports(module)) {
      const known = from === 'host' && name === 'random' ? random : unreachable(`${from}.${name}`);
      imports[from] = { ...imports[from], [name]: known };
    }
    // The exports are those of src/lib.rs's abi.
    this.#exports = new WebAssembly.Instance(module, imports).exports as Exports;
  }

  get bytes(): number {
    return this.#exports.memory.buffer.byteLength;
  }

  call(request: string): string {
    const input = this.#encoder.encode(request);
    const pointer = this.#exports.engine_alloc(input.length);
    new Uint8Array(this.#exports.memory.buffer, pointer, input.length).set(input);
    const answer = BigInt.asUintN(64, this.#exports.engine_call(pointer, input.length));
    const [at, length] = [Number(answer >> 32n), Number(answer & 0xffff_ffffn)];
    const text = this.#decoder.decode(new Uint8Array(this.#exports.memory.buffer, at, length));
    this.#exports.engine_free(at, length);
    return text;
  }
}

function unreachable(name: string) {
  return () => {
    throw new Error(`the policy module called ${name}, which it has no reason to`);
  };
}
