export type { Embedder } from './embedder.ts';
export { openHttpEmbedder } from './http-embedder.ts';
export { type LocalEmbedderOptions, openLocalEmbedder } from './local-embedder.ts';
