export { type CompileJob, compileInWorker, type ThreadLimits } from '../http-tools/compile-in-worker.ts';
export type { Compiled } from '../http-tools/compiled.ts';
export { type CompileOptions, compileOpenApi, type DocumentInput } from './compile.ts';
export { COMPILE_LIMITS, type CompileLimits } from './limits.ts';
export type { ToolFilter, ToolOverride, ToolSelection } from './selection.ts';
