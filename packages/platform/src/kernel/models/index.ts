export { type ChatModel, createChatModel } from './chat-model.ts';
export { type ModelEndpoint, ModelError, modelEndpoint, postJson } from './post-json.ts';
export { createReranker, type Reranker } from './reranker.ts';
