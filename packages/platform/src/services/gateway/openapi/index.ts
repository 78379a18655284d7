export { type CompileJob, compileInWorker } from '../http-tools/compile-in-worker.ts';
export type { Compiled } from '../http-tools/compiled.ts';
export { type CompileOptions, compileOpenApi } from './compile.ts';
export type { ToolSelection } from './selection.ts';
