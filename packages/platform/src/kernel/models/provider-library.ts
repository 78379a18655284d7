import type { EmbeddingModelV4, LanguageModelV4 } from '@ai-sdk/provider';
import { trimEnd } from '../trim-end.ts';
import type { ModelConfig, Provider } from './model-config.ts';

/** Models at their provider, by their ids there. */
export interface ProviderModels {
  language(modelId: string): LanguageModelV4;
  /** Absent where the provider has no models that make vectors. */
  embedding?(modelId: string): EmbeddingModelV4;
}

type Settings = Pick<ModelConfig, 'url' | 'key'> & { fetch: typeof fetch };

/**
 * The client library of each provider (ADR 27), loaded by the first call: each takes some 20 MB of memory. Address and key are given even where
 * there is none, for the libraries would look for them in the environment of the platform.
 */
const LIBRARIES: Record<Provider, (settings: Settings) => Promise<ProviderModels>> = {
  async openai({ url, key, fetch }) {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
    const models = createOpenAICompatible({
      name: 'openai',
      baseURL: url,
      fetch,
      includeUsage: true,
      supportsStructuredOutputs: true,
      ...(key === undefined ? {} : { apiKey: key }),
      transformRequestBody: new URL(url).hostname === 'api.openai.com' ? renameMaxTokens : (body) => body,
    });
    return { language: (id) => models(id), embedding: (id) => models.embeddingModel(id) };
  },
  async 'openai-responses'({ url, key = '', fetch }) {
    const { createOpenAI } = await import('@ai-sdk/openai');
    const models = createOpenAI({ baseURL: url, apiKey: key, fetch });
    return { language: (id) => models.responses(id), embedding: (id) => models.embeddingModel(id) };
  },
  async anthropic({ url, key = '', fetch }) {
    const { createAnthropic } = await import('@ai-sdk/anthropic');
    return { language: createAnthropic({ baseURL: url, apiKey: key, fetch }) };
  },
  async bedrock({ url, key = 'none', fetch }) {
    const { createAmazonBedrock } = await import('@ai-sdk/amazon-bedrock');
    const models = createAmazonBedrock({ baseURL: url, apiKey: key, region: 'us-east-1', fetch });
    return { language: (id) => models(id), embedding: (id) => models.embeddingModel(id) };
  },
  async gemini({ url, key = '', fetch }) {
    const { createGoogle } = await import('@ai-sdk/google');
    const models = createGoogle({ baseURL: url, apiKey: key, fetch });
    return { language: (id) => models(id), embedding: (id) => models.embeddingModel(id) };
  },
  async mistral({ url, key = '', fetch }) {
    const { createMistral } = await import('@ai-sdk/mistral');
    const models = createMistral({ baseURL: url, apiKey: key, fetch });
    return { language: (id) => models(id), embedding: (id) => models.embeddingModel(id) };
  },
};

/** OpenAI's own newer models take the limit under its new name alone, which its followers do not know. */
function renameMaxTokens({ max_tokens, ...body }: Record<string, unknown>): Record<string, unknown> {
  return { ...body, max_completion_tokens: max_tokens };
}

/** Loads the library of the model's provider. */
export function providerModels(
  { provider, url, key }: ModelConfig,
  fetch: typeof globalThis.fetch,
): Promise<ProviderModels> {
  return LIBRARIES[provider]({ url: trimEnd(url, '/'), fetch, ...(key === undefined ? {} : { key }) });
}
