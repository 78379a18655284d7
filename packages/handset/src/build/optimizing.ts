import { setFlagsFromString } from 'node:v8';

/** So many sources are compiled before it pays to optimize the compilers. */
export const MANY_SOURCES = 120;

/**
 * Let V8 optimize what runs often. `bin/handset.js` keeps it from doing so at the start of `handset build`: a short build
 * is over before machine code made for it has paid, and a quarter of its work was to make it. In any other process this
 * is V8's own setting, and nothing changes.
 */
export function allowOptimizing(): void {
  setFlagsFromString('--max-optimized-bytecode-size=61440');
}
