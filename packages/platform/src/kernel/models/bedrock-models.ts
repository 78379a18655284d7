import { errors } from '@agentplatform/contract';
import type { Model } from './model.ts';
import type { Models } from './models.ts';

/** What policies call a model by: its own ARN where the id is one, as of a foundation model otherwise. */
export function modelArn(modelId: string, region: string): string {
  return modelId.startsWith('arn:') ? modelId : `arn:aws:bedrock:${region}::foundation-model/${modelId}`;
}

/** The model that answers for an id of Bedrock: the one that is configured for it, otherwise the default. Throws ResourceNotFoundException where none is set up. */
export function modelFor(models: Models, modelId: string): Model {
  const id = modelId.startsWith('arn:') ? modelId.slice(modelId.indexOf('/') + 1) : modelId;
  const model = models.find(modelId) ?? models.find(id) ?? models.default;
  if (model) return model;
  throw errors.resourceNotFound(`No model is set up on this platform, so there is none to answer for ${modelId}.`, {
    remedy:
      'Set models.url to an OpenAI-compatible service and start again. For Ollama on this machine: npm start -- --models-url http://localhost:11434/v1 --models-name llama3.2. See docs/guides/models.md.',
  });
}
