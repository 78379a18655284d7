export * from './analyse.ts';
export * from './check.ts';
export { type EngineOptions, PolicyEngine } from './engine.ts';
export { findSolver, type Solver, solverInstall } from './solver.ts';
export { type ToolTargets, toolSchema } from './tool-schema.ts';
export type { TraceExample, TraceSearch } from './traces.ts';
export * from './types.ts';
