import { expect, it } from 'vitest';
import { AnswerEvents } from './answer-events.ts';
import { createModels } from './index.ts';

const config = (name: string, answersFor: string[] = []) => ({
  name,
  provider: 'openai' as const,
  model: `${name}-id`,
  url: 'http://127.0.0.1:9/v1',
  answersFor,
});
const deps = { outbound: { fetch: () => Promise.reject(new Error('nobody is called here')) }, timeoutMs: 1 };

it('finds a model by its name before those that answer for the id, in their order', () => {
  const models = createModels(
    [config('first', ['us.anthropic.*', '*nova*lite*']), config('second', ['us.*', 'first']), config('us.x')],
    'second',
    deps,
  );
  const found = (id: string) => models.find(id)?.name;
  expect(models.default?.name).toBe('second');
  expect(found('us.anthropic.claude-sonnet-4:0')).toBe('first');
  expect(found('us.amazon.nova-lite-v1')).toBe('first');
  expect(found('us.meta.llama')).toBe('second');
  expect(found('us.x')).toBe('us.x');
  expect(found('first')).toBe('first');
  for (const id of ['eu.anthropic.claude', '', 'anova', 'nova', 'sus.anthropic.'])
    expect(found(id), id).toBeUndefined();
});

it('takes the first for the default, and has none where none is named', () => {
  expect(createModels([config('first'), config('second')], undefined, deps).default?.name).toBe('first');
  expect(createModels([], undefined, deps)).toMatchObject({ default: undefined });
  expect(createModels([config('aa', ['a*a'])], undefined, deps).find('a')).toBeUndefined();
});

it('puts calls that come side by side one after the other, and a text between them too', () => {
  const events = new AnswerEvents();
  const came = [
    { type: 'text-delta', id: 't', delta: 'a' } as const,
    { type: 'tool-input-start', id: '1', toolName: 'f' } as const,
    { type: 'tool-input-start', id: '2', toolName: 'g' } as const,
    { type: 'tool-input-delta', id: '2', delta: '{}' } as const,
    { type: 'text-delta', id: 't', delta: 'b' } as const,
    { type: 'tool-input-delta', id: '1', delta: '[]' } as const,
    { type: 'tool-input-end', id: '1' } as const,
    { type: 'tool-input-end', id: '2' } as const,
    { type: 'tool-call', toolCallId: '1', toolName: 'f', input: '[]' } as const,
    { type: 'text-end', id: 't' } as const,
  ].flatMap((part) => [...events.take(part)]);
  expect([...came, ...events.close()]).toEqual([
    { type: 'start', part: 0, head: { type: 'text' } },
    { type: 'delta', part: 0, delta: 'a' },
    { type: 'stop', part: 0 },
    { type: 'start', part: 1, head: { type: 'tool-call', id: '1', name: 'f' } },
    { type: 'delta', part: 1, delta: '[]' },
    { type: 'stop', part: 1 },
    { type: 'start', part: 2, head: { type: 'tool-call', id: '2', name: 'g' } },
    { type: 'delta', part: 2, delta: '{}' },
    { type: 'stop', part: 2 },
    { type: 'start', part: 3, head: { type: 'text' } },
    { type: 'delta', part: 3, delta: 'b' },
    { type: 'stop', part: 3 },
  ]);
});
