export { type ArgumentProblem, type CheckArguments, compileArguments } from './arguments.ts';
export type { Problem } from './problem.ts';
export type { JsonObject, JsonObjectSchema, JsonSchema, Tool, ToolHints } from './tool.ts';
export { prefixedName, splitName, type ToNamed, toolNames } from './tool-names.ts';
