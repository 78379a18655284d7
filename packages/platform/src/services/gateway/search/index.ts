export { ToolSearch } from './tool-search.ts';
export { ToolVectors } from './tool-vectors.ts';
