import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Message } from './message.ts';
import { halved, type Portion, portionsOf } from './portions.ts';

const messagesFrom = (texts: readonly string[]): Message[] =>
  texts.map((text, index) => ({ eventId: `${index}#a`, index: 0, role: 'USER', text, at: new Date(index) }));
const texts = fc.array(fc.string({ unit: fc.constantFrom('a', 'bc ', '😀', '. '), minLength: 1, maxLength: 400 }), {
  maxLength: 20,
});

/** That every message is in the portions as a whole, in order: its pieces lie over each other or side by side. */
function expectWhole(messages: readonly Message[], portions: readonly Portion[]): void {
  const pieces = portions.flatMap((portion) => portion.messages);
  for (const { eventId, text } of messages) {
    let covered = 0;
    for (const piece of pieces.filter((one) => one.eventId === eventId)) {
      const starts = Array.from({ length: covered + 1 }, (_, at) => at);
      const start = starts.findLast((at) => text.startsWith(piece.text, at));
      expect(start, piece.text).toBeDefined();
      covered = Math.max(covered, (start ?? 0) + piece.text.length);
    }
    expect(covered).toBe(text.length);
  }
  expect(pieces.map(({ eventId }) => Number.parseInt(eventId, 10))).toEqual(
    pieces.map(({ eventId }) => Number.parseInt(eventId, 10)).toSorted((a, b) => a - b),
  );
}

describe('portions of a conversation', () => {
  it('hold all of it, in order, none larger than asked for, and no character in two', () => {
    fc.assert(
      fc.property(texts, fc.integer({ min: 60, max: 500 }), (said, size) => {
        const messages = messagesFrom(said);
        const portions = portionsOf(messages, size);
        expectWhole(messages, portions);
        for (const { before, messages: read } of portions) {
          const length = [...before, ...read].reduce((sum, { text }) => sum + text.length, 0);
          expect(length).toBeLessThanOrEqual(size);
          for (const { text } of read) expect(text.isWellFormed()).toBe(true);
        }
      }),
      { seed: 18, numRuns: 200 },
    );
  });

  it('are cut in two until a message of two hundred characters is left', () => {
    fc.assert(
      fc.property(texts, (said) => {
        const messages = messagesFrom(said);
        const cut = (portion: Portion): Portion[] => halved(portion)?.flatMap(cut) ?? [portion];
        const [whole] = portionsOf(messages, 1_000_000);
        if (whole) expectWhole(messages, cut(whole));
      }),
      { seed: 18, numRuns: 50 },
    );
  });

  it('begin with the end of the one before', () => {
    const [, second] = portionsOf(messagesFrom(['x'.repeat(85), 'Her name is Ada', 'y'.repeat(100)]), 200);
    expect(second?.before.map(({ text }) => text)).toEqual(['Her name is Ada']);
  });
});
