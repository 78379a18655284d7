export type {
  AnswerPart,
  FilePart,
  Json,
  JsonSchema,
  Model,
  ModelAnswer,
  ModelEvent,
  ModelMessage,
  ModelRequest,
  ModelUsage,
  PartHead,
  StopReason,
  TextPart,
  ToolChoice,
  ToolDefinition,
  ToolResultPart,
  UserPart,
} from './model.ts';
export { type ModelConfig, PROVIDER_URLS, PROVIDERS, type Provider } from './model-config.ts';
export { ModelError } from './model-error.ts';
export { createModels, type Models } from './models.ts';
export { type ModelEndpoint, modelEndpoint, postJson } from './post-json.ts';
export { createReranker, type Reranker } from './reranker.ts';
