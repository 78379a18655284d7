export { type CheckArguments, compileArguments } from './arguments.ts';
export { plainText } from './plain-text.ts';
export type { Problem } from './problem.ts';
export type { JsonObject, JsonObjectSchema, Tool } from './tool.ts';
export { prefixedName, splitName } from './tool-names.ts';
export { digestOf, embeddedText, searchedPart, toolTexts } from './tool-text.ts';
