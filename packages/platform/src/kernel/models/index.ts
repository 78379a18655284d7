export { type ChatAnswer, type ChatModel, type ChatRequest, createChatModel } from './chat-model.ts';
export { type ModelEndpoint, ModelError, modelEndpoint, postJson } from './post-json.ts';
