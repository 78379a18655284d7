export { openBedrockEmbedder } from './bedrock-embedder.ts';
export type { Embedder } from './embedder.ts';
export { fetchedModel } from './fetched-model.ts';
export { openHttpEmbedder } from './http-embedder.ts';
export { openLocalEmbedder } from './local-embedder.ts';
