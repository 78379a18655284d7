export { type ChatAnswer, type ChatModel, type ChatRequest, createChatModel } from './chat-model.ts';
export { type ModelEndpoint, ModelError, postJson } from './post-json.ts';
