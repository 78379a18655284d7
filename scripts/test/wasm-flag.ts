/**
 * An option of Node's: functions of the database's WebAssembly are optimized once they have run for long, and not before. What a test
 * starts has ended by then; with Node's own budget a platform's first two seconds cost half as much processor time again.
 */
export const WASM_FLAG = '--wasm-tiering-budget=1300000000';
