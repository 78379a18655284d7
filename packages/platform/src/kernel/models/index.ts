export type { Model, ModelAnswer, ModelEvent, ModelRequest } from './model.ts';
export { PROVIDERS, type Provider } from './model-config.ts';
export { ModelError } from './model-error.ts';
export { createModels, type Models } from './models.ts';
export { type ModelEndpoint, modelEndpoint, postJson } from './post-json.ts';
export { createReranker, type Reranker } from './reranker.ts';
