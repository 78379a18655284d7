import { ModelTokens } from '../../kernel/models/index.ts';
import type { ServiceModule } from '../../service-module.ts';
import { BEDROCK_RUNTIME_OPERATIONS, type BedrockRuntimeOperation, createBedrockRuntimeService } from './index.ts';

/** Bedrock Runtime: agents written for models of Bedrock reach the models that the configuration names. */
export const module: ServiceModule<'bedrock-runtime', BedrockRuntimeOperation> = {
  operations: BEDROCK_RUNTIME_OPERATIONS,
  create({ models, meter, clock }) {
    const tokens = new ModelTokens();
    const service = createBedrockRuntimeService({ models, tokens, meter, clock });
    const label = 'model';
    return {
      ...service,
      metrics: [
        { name: 'model_input_tokens', help: 'Tokens that agents gave to models.', label, read: () => tokens.input },
        { name: 'model_output_tokens', help: 'Tokens that agents got from models.', label, read: () => tokens.output },
      ],
    };
  },
};
