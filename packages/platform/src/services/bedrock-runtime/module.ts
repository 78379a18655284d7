import type { ServiceModule } from '../../service-module.ts';
import { type BedrockRuntimeOperation, createBedrockRuntimeService } from './index.ts';
import { ModelTokens } from './model-tokens.ts';

/** Bedrock Runtime: agents written for models of Bedrock reach the models that the configuration names. */
export const module: ServiceModule<'bedrock-runtime', BedrockRuntimeOperation> = {
  create({ models, metrics, clock }) {
    const tokens = new ModelTokens();
    metrics.watch('model_input_tokens', 'Tokens that agents gave to models, by model.', () => tokens.input, 'model');
    metrics.watch('model_output_tokens', 'Tokens that agents got from models, by model.', () => tokens.output, 'model');
    return createBedrockRuntimeService({ models, tokens, clock });
  },
};
