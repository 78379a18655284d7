import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sentencesOf } from './sentences.ts';
import { withoutCourtesy } from './statements.ts';

describe('sentences', () => {
  it.each([
    ['500 mg of metformin, twice.', ['500 mg of metformin, twice.']],
    ['14 Harbour Lane is my address.', ['14 Harbour Lane is my address.']],
    ['Dr. Smith called. She is nice.', ['Dr. Smith called.', 'She is nice.']],
    ['I met J. R. R. Tolkien at 5 p.m. on Monday.', ['I met J. R. R. Tolkien at 5 p.m. on Monday.']],
    ['We meet at 5 p.m. Bring bread.', ['We meet at 5 p.m.', 'Bring bread.']],
    ['1. I like tea.\n2. I hate milk.', ['I like tea.', 'I hate milk.']],
    ['5. May is my birthday.', ['5. May is my birthday.']],
    ['- I have 2 cats\n- I live in St. Ives', ['I have 2 cats', 'I live in St. Ives']],
  ])('%s', (text, expected) => expect(sentencesOf(text)).toEqual(expected));

  it('hold every number, name and date of a text', () => {
    const token = fc.constantFrom(
      ...['500 mg', '14 Harbour Lane', 'Dr. Smith', 'St. Ives', '5. May 2024', '3.5', '1,800', '9:15', 'p.m.', 'e.g.'],
      ...[
        'I',
        'take',
        'and',
        'Yes,',
        'Hi,',
        'Anna',
        'Mr. J. Doe',
        '-',
        '*',
        '2)',
        'No.',
        '?',
        '.',
        '\n',
        '7B',
        'O’Neill',
        "O'Hara",
      ],
    );
    const kept = (text: string) => (text.match(/[\p{L}\p{N}’']+/gu) ?? []).filter((word) => /\d|^\p{Lu}/u.test(word));
    fc.assert(
      fc.property(fc.array(token, { maxLength: 30 }), (tokens) => {
        // A list's own numbers are no part of what it says.
        const text = tokens.join(' ');
        fc.pre(!/(?:^|\n)\s*\d+[.)]/.test(text));
        const sentences = sentencesOf(text);
        expect(sentences.flatMap(kept)).toEqual(kept(text));
        for (const sentence of sentences) {
          const dropped = kept(sentence).slice(0, kept(sentence).length - kept(withoutCourtesy(sentence)).length);
          expect(dropped.filter((word) => !/^(?:Hi|Yes)$/.test(word))).toEqual([]);
        }
      }),
      { seed: 18, numRuns: 500 },
    );
  });

  it('of any length are whole, and a text without an end is cut between words', () => {
    const long = `I own ${'a very big '.repeat(200)}house.`;
    expect(sentencesOf(long)).toEqual([long]);
    const endless = 'word '.repeat(10_000).trim();
    expect(sentencesOf(endless).join(' ')).toBe(endless);
  });
});
