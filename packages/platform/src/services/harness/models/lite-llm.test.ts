import { expect, it } from 'vitest';
import { liteLlmModel } from './lite-llm.ts';

it.each<[modelId: string, apiBase: string | undefined, place: object]>([
  ['openai/gpt-4.1', undefined, { provider: 'openai', model: 'gpt-4.1', url: 'https://api.openai.com/v1' }],
  ['anthropic/claude-x', undefined, { provider: 'anthropic', model: 'claude-x', url: 'https://api.anthropic.com/v1' }],
  [
    'ollama/llama3.2',
    'http://localhost:11434/',
    { provider: 'openai', model: 'llama3.2', url: 'http://localhost:11434/v1' },
  ],
  ['ollama_chat/q', 'http://localhost:11434/v1', { provider: 'openai', model: 'q', url: 'http://localhost:11434/v1' }],
  ['hosted_vllm/org/name', 'http://gpu/v1', { provider: 'openai', model: 'org/name', url: 'http://gpu/v1' }],
  ['org/name', 'http://gpu/v1', { provider: 'openai', model: 'org/name', url: 'http://gpu/v1' }],
  ['plain', 'http://gpu/v1', { provider: 'openai', model: 'plain', url: 'http://gpu/v1' }],
])('%s at %s', (modelId, apiBase, place) => {
  expect(liteLlmModel({ modelId, ...(apiBase === undefined ? {} : { apiBase }) })).toEqual(place);
});

it('a model that could be anywhere needs its address', () => {
  expect(() => liteLlmModel({ modelId: 'ollama/llama3.2' })).toThrow(/apiBase/);
});
