import type { data } from '@agentplatform/contract';
import { describe, expect, it } from 'vitest';
import type { Conversation } from '../conversations/conversation-store.ts';
import type { OpenTurn } from '../conversations/message.ts';
import { turnInput } from './turn-input.ts';

const use = (toolUseId: string, name = 'weather') => ({ toolUse: { toolUseId, name, input: { city: 'Paris' } } });
const result = (toolUseId: string, text = 'sunny') => ({ toolResult: { toolUseId, content: [{ text }] } });
const stored = (toolUseId: string, text = 'sunny') => ({
  toolResult: { toolUseId, status: 'success' as const, content: [{ text }] },
});
const user = (...content: object[]) => ({ role: 'user', content }) as data.HarnessMessage;
const assistant = (...content: object[]) => ({ role: 'assistant', content }) as data.HarnessMessage;

const HISTORY = [
  { role: 'user' as const, content: [{ text: 'Hi.' }] },
  { role: 'assistant' as const, content: [{ text: 'Hello.' }] },
];
const ASKED = [...HISTORY, { role: 'user' as const, content: [{ text: 'Weather?' }] }];
/** Two inline functions wait, and a tool of the platform has run beside them. */
const OPEN: OpenTurn = {
  messages: ASKED,
  assistant: { role: 'assistant', content: [{ text: 'Let me look.' }, use('a'), use('own', 'shell'), use('b')] },
  results: [{ toolUseId: 'own', status: 'success', content: [{ text: 'done' }] }],
};
const waiting: Conversation = { messages: HISTORY, open: OPEN, revision: 3 };
const settled: Conversation = { messages: HISTORY, open: undefined, revision: 2 };

describe('a new turn', () => {
  it('follows the conversation of before', () => {
    expect(turnInput(settled, [user({ text: 'Next.' })])).toEqual({
      messages: HISTORY,
      input: [{ role: 'user', content: [{ text: 'Next.' }] }],
    });
  });

  it('begins also after a client that never returned, on the conversation as it was', () => {
    expect(turnInput(waiting, [user({ text: 'Something else.' })]).messages).toEqual(HISTORY);
  });

  it('may bring along an exchange in which every call has its result', () => {
    const given = [user({ text: 'Weather?' }), assistant(use('x')), user(result('x'))];
    expect(turnInput(settled, given).input).toHaveLength(3);
  });

  it.each<[what: string, messages: data.HarnessMessage[], problem: RegExp]>([
    ['nothing', [], /messages/],
    ['an empty message', [user()], /must not be empty/],
    ['an end by the assistant', [user({ text: 'a' }), assistant({ text: 'b' })], /must be of the user/],
    ['two messages of one role', [user({ text: 'a' }), user({ text: 'b' })], /other role/],
    ['a result without its call', [user(result('a'))], /without the toolUse before it/],
    [
      'a call without its result',
      [user({ text: 'a' }), assistant(use('x')), user({ text: 'b' })],
      /misses the toolResult for x/,
    ],
    ['a result of another call', [user({ text: 'a' }), assistant(use('x')), user(result('x'), result('y'))], /y/],
    [
      'a result twice',
      [user({ text: 'a' }), assistant(use('x')), user(result('x'), result('x'))],
      /two toolResult blocks/,
    ],
    ['a call by the user', [user(use('x'))], /only the assistant/],
  ])('is not begun with %s', (_what, messages, problem) => {
    expect(() => turnInput(settled, messages)).toThrow(problem);
  });
});

describe('a turn that waits for its client', () => {
  const calls = assistant(use('a'), use('b'));

  it('goes on with the calls and their results together, beside what the platform ran itself, in the order of the calls', () => {
    expect(turnInput(waiting, [calls, user(result('b', 'rain'), result('a'), { text: 'Be quick.' })])).toEqual({
      messages: [...ASKED, OPEN.assistant],
      input: [
        { role: 'user', content: [stored('a'), stored('own', 'done'), stored('b', 'rain'), { text: 'Be quick.' }] },
      ],
    });
  });

  it('goes on where the client repeats the calls of the platform, too', () => {
    const all = assistant(use('a'), use('own', 'shell'), use('b'));
    expect(turnInput(waiting, [all, user(result('a'), result('b'))]).input).toHaveLength(1);
  });

  it('goes on with a result that is an error, or JSON', () => {
    const failed = { toolResult: { toolUseId: 'a', content: [{ json: { no: true } }], status: 'error' } };
    const { input } = turnInput(waiting, [calls, user(failed, result('b'))]);
    expect(input[0]?.content[0]).toEqual({
      toolResult: { toolUseId: 'a', status: 'error', content: [{ json: { no: true } }] },
    });
  });

  it.each<[what: string, messages: data.HarnessMessage[], problem: RegExp]>([
    ['the calls alone', [calls], /must be the message of the assistant/],
    ['the results alone', [user(result('a'), result('b'))], /without the toolUse before it/],
    ['a missing call', [assistant(use('a')), user(result('a'), result('b'))], /misses the toolUse b/],
    [
      'an unknown call',
      [assistant(use('a'), use('b'), use('z')), user(result('a'), result('b'))],
      /z, which the model did not call/,
    ],
    ['a call twice', [assistant(use('a'), use('a'), use('b')), user(result('a'), result('b'))], /a twice/],
    [
      'a call of another function',
      [assistant(use('a', 'other'), use('b')), user(result('a'), result('b'))],
      /calls other/,
    ],
    ['a missing result', [calls, user(result('a'))], /misses the toolResult for b/],
    ['an unknown result', [calls, user(result('a'), result('b'), result('z'))], /z, which waits for none/],
    ['a result twice', [calls, user(result('a'), result('a'), result('b'))], /two toolResult blocks for a/],
    [
      'a result of what the platform ran',
      [calls, user(result('a'), result('own'), result('b'))],
      /own, which waits for none/,
    ],
    [
      'more messages',
      [calls, user(result('a'), result('b')), assistant({ text: 'x' })],
      /must be the message of the assistant/,
    ],
  ])('does not go on with %s', (_what, messages, problem) => {
    expect(() => turnInput(waiting, messages)).toThrow(problem);
  });

  it('is none where no turn waits', () => {
    expect(() => turnInput(settled, [calls, user(result('a'), result('b'))])).toThrow(/no turn of this session waits/);
  });
});
