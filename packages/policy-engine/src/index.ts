export { type EngineOptions, PolicyEngine } from './engine.ts';
export { type ToolTargets, toolSchema } from './tool-schema.ts';
export * from './types.ts';
