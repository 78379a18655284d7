export { ToolSearch } from './tool-search.ts';
