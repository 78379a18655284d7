export { openBedrockEmbedder } from './bedrock-embedder.ts';
export { embedEach } from './embed-each.ts';
export type { Embedder } from './embedder.ts';
export { fetchedModel } from './fetched-model.ts';
export { openHttpEmbedder } from './http-embedder.ts';
export { Late } from './late.ts';
export { openLocalEmbedder } from './local-embedder.ts';
export { embedderOf, type OpenEmbedder } from './open-embedder.ts';
