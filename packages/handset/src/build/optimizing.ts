import { setFlagsFromString } from 'node:v8';

/** So many sources are compiled before it pays to optimize the compilers as V8 sees fit. */
export const MANY_SOURCES = 120;

/**
 * Let V8 optimize what runs often. `bin/handset.js` limits it at the start of `handset build`: a short build is over before
 * machine code made for it has paid, and a quarter of its work was to make it. Only what is called very often is
 * optimized there, by the quick one of V8's two compilers, in a thread beside. These are V8's own settings, those of any
 * other process.
 */
export function allowOptimizing(): void {
  setFlagsFromString('--turbofan');
  setFlagsFromString('--invocation-count-for-maglev=400');
}
