/** Who answers: any OpenAI-compatible service (also on this machine), or one with an API of its own. */
export const PROVIDERS = ['openai', 'openai-responses', 'anthropic', 'bedrock', 'gemini', 'mistral'] as const;
export type Provider = (typeof PROVIDERS)[number];

/** Where the providers are that have one place; an OpenAI-compatible service has none of its own. */
export const PROVIDER_URLS: Readonly<Partial<Record<Provider, string>>> = {
  anthropic: 'https://api.anthropic.com/v1',
  bedrock: 'https://bedrock-runtime.us-east-1.amazonaws.com',
  gemini: 'https://generativelanguage.googleapis.com/v1beta',
  mistral: 'https://api.mistral.ai/v1',
  'openai-responses': 'https://api.openai.com/v1',
};

/** A model as the configuration names it. */
export interface ModelConfig {
  name: string;
  provider: Provider;
  /** Id at the provider. */
  model: string;
  /** Base URL, e.g. `http://localhost:11434/v1`. */
  url: string;
  key?: string;
  /** For requests that say nothing of it. */
  maxTokens?: number;
  temperature?: number;
  /** Other model ids that it answers for; `*` stands for any text. */
  answersFor: readonly string[];
}
