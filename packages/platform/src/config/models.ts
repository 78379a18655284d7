import { choice, optionalUrl, optionalWord, word } from './setting.ts';

// Models.

export const embeddings = {
  directory: optionalWord({
    about:
      'Directory of a local sentence-transformers model (BERT, model.safetensors) that memory searches with; models/embedding in the data directory is used when it is there.',
    unit: 'path',
    pattern: /^[^\0]+$/,
    expected: 'a path',
  }),
  url: optionalUrl({
    about: 'Base URL of an OpenAI-compatible service whose embeddings memory searches with, instead of a local model.',
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
  url: optionalUrl({
    about:
      'Base URL of an OpenAI-compatible service whose model makes long-term memory of conversations; without it that is done by rules.',
    expected: 'a URL such as http://localhost:11434/v1',
  }),
  name: word({
    about: 'Name of the model at models.url; a strategy may name another one.',
    default: 'gpt-4.1-mini',
    pattern: /^\S+$/,
    expected: 'the name of a model',
  }),
  key: optionalWord({
    about: 'API key for models.url.',
    secret: true,
    pattern: /^\S+$/,
    expected: 'a key without spaces',
  }),
};
