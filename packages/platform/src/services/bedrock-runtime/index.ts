import type { Clock } from '../../kernel/clock.ts';
import { nameOf } from '../../kernel/http/index.ts';
import type { Meter } from '../../kernel/metering/index.ts';
import {
  BEDROCK,
  type Model,
  type Models,
  type ModelTokens,
  meteredModel,
  modelArn,
  modelFor,
} from '../../kernel/models/index.ts';
import type { RequestContext, Service } from '../../kernel/service.ts';

export type BedrockRuntimeOperation = keyof typeof BEDROCK;
export const BEDROCK_RUNTIME_OPERATIONS = Object.keys(BEDROCK) as BedrockRuntimeOperation[];

export interface BedrockRuntimeDeps {
  models: Models;
  tokens: ModelTokens;
  meter: Meter;
  clock: Clock;
}

/** Bedrock Runtime's four operations that ask a model, answered by the models of the configuration. */
export function createBedrockRuntimeService({
  models,
  tokens,
  meter,
  clock,
}: BedrockRuntimeDeps): Service<BedrockRuntimeOperation> {
  const resource = ({ modelId }: { modelId: string }, { region }: RequestContext): string => modelArn(modelId, region);
  const modelOf = ({ modelId }: { modelId: string }, { accountId, region, principal }: RequestContext): Model => {
    const model = modelFor(models, modelId);
    const whose = { accountId, resourceArn: modelArn(modelId, region), userId: nameOf(principal) };
    return meteredModel(model, (usage) => {
      tokens.add(model.name, usage);
      meter.count('input-tokens', whose, usage.input);
      meter.count('output-tokens', whose, usage.output);
    });
  };
  return {
    operations: {
      Converse: {
        resource,
        handle: async (input, ctx) => BEDROCK.Converse(input, modelOf(input, ctx), ctx, clock),
      },
      ConverseStream: {
        resource,
        handle: async (input, ctx) => BEDROCK.ConverseStream(input, modelOf(input, ctx), ctx, clock),
      },
      InvokeModel: {
        resource,
        handle: async (input, ctx) => BEDROCK.InvokeModel(input, modelOf(input, ctx), ctx, clock),
      },
      InvokeModelWithResponseStream: {
        resource,
        handle: async (input, ctx) => BEDROCK.InvokeModelWithResponseStream(input, modelOf(input, ctx), ctx, clock),
      },
    },
    port: undefined,
    start: async () => undefined,
    stop: async () => undefined,
  };
}
