export { modelArn, modelFor } from './bedrock-models.ts';
export { BEDROCK } from './formats/bedrock.ts';
export {
  answerClient,
  type ClientApi,
  type ClientCall,
  clientApiOf,
  clientCall,
  clientError,
} from './formats/client-answers.ts';
export { type ListedModel, modelEntry, modelList } from './formats/model-list.ts';
export { meteredModel } from './metered-model.ts';
export type {
  AnswerPart,
  Json,
  JsonSchema,
  Model,
  ModelAnswer,
  ModelEvent,
  ModelMessage,
  ModelRequest,
  ModelUsage,
  UserPart,
} from './model.ts';
export { type ModelConfig, PROVIDER_URLS, PROVIDERS, type Provider } from './model-config.ts';
export { ModelError } from './model-error.ts';
export { ModelTokens } from './model-tokens.ts';
export { createModels, type Models } from './models.ts';
export { type ModelEndpoint, modelEndpoint, postJson } from './post-json.ts';
export { createReranker, type Reranker } from './reranker.ts';
export { estimatedTokens, TOKENS_A_FILE } from './token-estimate.ts';
