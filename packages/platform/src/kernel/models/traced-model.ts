import { errorCodeOf, NO_SPAN, type Span } from '../telemetry/index.ts';
import type { Model, ModelRequest, ModelUsage, StopReason } from './model.ts';
import type { Provider } from './model-config.ts';

/** OpenTelemetry's names of the providers. */
const PROVIDER_NAMES: Record<Provider, string> = {
  openai: 'openai',
  'openai-responses': 'openai',
  anthropic: 'anthropic',
  bedrock: 'aws.bedrock',
  gemini: 'gcp.gemini',
  mistral: 'mistral_ai',
};

/** The same model, each of its calls a part of what asks it, with the tokens that it took; what was asked and answered is in no span. */
export function tracedModel(model: Model, provider: Provider): Model {
  const begin = ({ span = NO_SPAN, modelId = model.modelId, maxTokens, temperature }: ModelRequest): Span => {
    if (!span.traced) return NO_SPAN;
    const call = span.child(`chat ${modelId}`, 'client');
    call.set('gen_ai.operation.name', 'chat');
    call.set('gen_ai.provider.name', PROVIDER_NAMES[provider]);
    call.set('gen_ai.request.model', modelId);
    call.set('gen_ai.request.max_tokens', maxTokens);
    call.set('gen_ai.request.temperature', temperature);
    return call;
  };
  const answered = (call: Span, { usage, stopReason }: { usage: ModelUsage; stopReason: StopReason }): void => {
    call.set('gen_ai.usage.input_tokens', usage.input);
    call.set('gen_ai.usage.output_tokens', usage.output);
    call.set('gen_ai.usage.cache_read.input_tokens', usage.cacheRead);
    call.set('gen_ai.usage.cache_creation.input_tokens', usage.cacheWrite);
    call.set('gen_ai.response.finish_reasons', [stopReason]);
  };
  return {
    ...model,
    async generate(request, signal) {
      const call = begin(request);
      try {
        const answer = await model.generate(request, signal);
        call.set('gen_ai.response.model', answer.modelId);
        answered(call, answer);
        return answer;
      } catch (error) {
        call.fail(errorCodeOf(error));
        throw error;
      } finally {
        call.end();
      }
    },
    async *stream(request, signal) {
      const call = begin(request);
      try {
        for await (const event of model.stream(request, signal)) {
          if (event.type === 'end') answered(call, event);
          yield event;
        }
      } catch (error) {
        call.fail(errorCodeOf(error));
        throw error;
      } finally {
        call.end();
      }
    },
  };
}
