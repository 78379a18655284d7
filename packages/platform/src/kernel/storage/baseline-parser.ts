import { setFlagsFromString } from 'node:v8';
import type { Extension } from '@electric-sql/pglite';

/** What Emscripten asks its host for, of which only this is of interest here. */
interface EmscriptenOptions {
  instantiateWasm(imports: object, receive: (instance: WasmInstance, module: object) => void): object;
}

interface WasmInstance {
  exports: Record<string, unknown>;
}

/** Beyond the end of any memory of less than 4 GiB, as the database's is at its start. */
const NOWHERE = -16;

/**
 * Leaves PostgreSQL's parser, one function of 105 kB, as V8's baseline compiler makes it. It is called for each statement, so V8 would
 * optimize it within seconds of the start, which takes 604 MB for about a second: more than all else in the server. It gains nothing:
 * statements take the same time either way (docs/benchmarks.md, "footprint"). All other functions are optimized as ever.
 */
export const baselineParser: Extension = {
  name: 'baseline-parser',
  setup: async (_database, options: EmscriptenOptions) => ({
    emscriptenOpts: {
      ...options,
      instantiateWasm: (imports, receive) =>
        options.instantiateWasm(imports, (instance, module) => {
          compileParser(instance);
          receive(instance, module);
        }),
    } satisfies EmscriptenOptions,
  }),
};

/**
 * V8 compiles a function when it is first called, and only then decides whether its code counts how hot it is. So the parser is called while a
 * flag says that none counts. A text beyond the end of memory ends the call when its length is looked for, before anything is written but the
 * stack, which is put back. Before that the scanner is called in the same way, so that what it needs counts. Throws for a module without these.
 */
export function compileParser({ exports }: WasmInstance): void {
  const [parse, scan, stackOf, restore] = [
    ...['raw_parser', 'scanner_init'],
    ...['emscripten_stack_get_current', '_emscripten_stack_restore'],
  ].map((name) => {
    const found = exports[name];
    if (typeof found !== 'function') throw new Error(`this version of PGlite exports no ${name}`);
    return found;
  });
  const stack: unknown = stackOf?.();
  trap(() => scan?.(NOWHERE, 0, 0, 0));
  setFlagsFromString('--wasm-tier-up-filter=0');
  trap(() => parse?.(NOWHERE, 0));
  setFlagsFromString('--wasm-tier-up-filter=-1');
  restore?.(stack);
}

function trap(call: () => unknown): void {
  try {
    call();
  } catch (error) {
    if (error instanceof Error && error.name === 'RuntimeError') return;
    throw error;
  }
  throw new Error('PGlite read beyond the end of its memory');
}
