export { type Found, ToolSearch } from './tool-search.ts';
