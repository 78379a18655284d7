import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { messagesOf, plainText, SOURCE_KEY } from './message.ts';

const event = { eventId: '1#a', at: new Date(0), metadata: {} };
const said = (role: 'USER' | 'ASSISTANT' | 'TOOL' | 'OTHER', text: string) => ({
  conversational: { role, content: { text } },
});

describe('what was said', () => {
  it('is the words of users and assistants', () => {
    const payload = [
      said('USER', 'one'),
      said('TOOL', 'two'),
      said('OTHER', 'three'),
      said('ASSISTANT', 'four'),
      { blob: 'five' },
    ];
    expect(messagesOf({ ...event, payload }).map(({ index, text }) => [index, text])).toEqual([
      [0, 'one'],
      [3, 'four'],
    ]);
  });

  it.each(['memory', 'system', 'tool'])('is nothing in an event whose source is %s', (stringValue) => {
    const payload = [said('USER', 'one')];
    expect(messagesOf({ ...event, payload })).toHaveLength(1);
    expect(messagesOf({ ...event, payload, metadata: { [SOURCE_KEY]: { stringValue } } })).toEqual([]);
  });

  it.each([
    ['<user_context>I like tea</user_context> And you?', 'And you?'],
    ['a <System-Reminder kind="x">b\nc</System-Reminder> d', 'a   d'],
    ['never closed <memory>I like tea', 'never closed'],
    ['```js\nconst my = 1\n``` mine', 'mine'],
    ['<systematic>stays</systematic>', '<systematic>stays</systematic>'],
  ])('is not what agents put around it: %s', (text, expected) => expect(plainText(text)).toBe(expected));

  it('is the text in a framework’s envelope, without its tools', () => {
    const content = [
      { text: 'I like tea' },
      { toolUse: { input: 'x' } },
      { toolResult: { content: [{ text: 'noise' }] } },
    ];
    expect(plainText(JSON.stringify({ message: { role: 'user', content }, message_id: 0 }))).toBe('I like tea');
    expect(plainText('{not json')).toBe('{not json');
  });

  it('is not what was marked inside JSON either', () => {
    const payload = [{ json: { content: { note: 'I like tea <memory>She lives in Oslo.</memory>' } } }];
    expect(messagesOf({ ...event, payload })[0]?.text).toBe('{"note":"I like tea  "}');
  });

  it('is read once, however many marks begin and never end', () => {
    // Read to its end at each of them, this would take days.
    expect(plainText(`a ${'<memory '.repeat(2_000_000)}`)).toHaveLength(16_000_001);
  });

  it('never throws and never holds U+0000', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(plainText(text).includes('\u0000')).toBe(false);
      }),
    );
  });
});
