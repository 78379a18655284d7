import { type control, errors } from '@agentplatform/contract';
import { PROVIDER_URLS, type Provider } from '../../../kernel/models/index.ts';
import { trimEnd } from '../../../kernel/trim-end.ts';
import type { ModelPlace } from './harness-models.ts';

/** Prefixes of LiteLLM's names of models: what their services speak, and where they are unless `apiBase` says so. */
const PREFIXES: Readonly<Record<string, { provider: Provider; url?: string | undefined; path?: string }>> = {
  openai: { provider: 'openai', url: 'https://api.openai.com/v1' },
  anthropic: { provider: 'anthropic', url: PROVIDER_URLS.anthropic },
  gemini: { provider: 'gemini', url: PROVIDER_URLS.gemini },
  mistral: { provider: 'mistral', url: PROVIDER_URLS.mistral },
  ollama: { provider: 'openai', path: '/v1' },
  ollama_chat: { provider: 'openai', path: '/v1' },
  hosted_vllm: { provider: 'openai' },
  openrouter: { provider: 'openai', url: 'https://openrouter.ai/api/v1' },
  groq: { provider: 'openai', url: 'https://api.groq.com/openai/v1' },
  deepseek: { provider: 'openai', url: 'https://api.deepseek.com/v1' },
  xai: { provider: 'openai', url: 'https://api.x.ai/v1' },
};

/** Where a model of LiteLLM's names is. Throws ValidationException for one that needs `apiBase`, and has none. */
export function liteLlmModel({
  modelId,
  apiBase,
}: Pick<control.HarnessLiteLlmModelConfig, 'modelId' | 'apiBase'>): ModelPlace {
  const slash = modelId.indexOf('/');
  const prefix = slash < 0 ? '' : modelId.slice(0, slash);
  const known = Object.hasOwn(PREFIXES, prefix) ? PREFIXES[prefix] : undefined;
  // What is no prefix is a part of the name, at a service that speaks as OpenAI does.
  const { provider, url, path = '' } = known ?? { provider: 'openai' as const };
  const model = known ? modelId.slice(slash + 1) : modelId;
  if (apiBase !== undefined) {
    const base = trimEnd(apiBase, '/');
    return { provider, model, url: base.endsWith(path) ? base : `${base}${path}` };
  }
  if (url !== undefined) return { provider, model, url };
  throw errors.invalidField(
    'model.liteLlmModelConfig.apiBase',
    `is required for ${modelId}: nobody knows where it is`,
    {
      remedy: `Name its address, such as http://localhost:11434, or use one of ${Object.keys(PREFIXES).join(', ')} before the name.`,
    },
  );
}
