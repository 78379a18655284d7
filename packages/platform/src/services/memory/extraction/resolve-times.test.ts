import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { resolveTimes } from './resolve-times.ts';

/** A Friday. */
const at = new Date('2024-05-03T10:00:00Z');

describe('relative times', () => {
  it.each([
    ['I arrived yesterday.', 'I arrived yesterday [2024-05-02].'],
    ['the day before yesterday', 'the day before yesterday [2024-05-01]'],
    ['We met three days ago', 'We met three days ago [2024-04-30]'],
    ['in 2 weeks', 'in 2 weeks [2024-05-17]'],
    ['a month ago', 'a month ago [2024-04]'],
    ['next year', 'next year [2025]'],
    ['last month', 'last month [2024-04]'],
    ['last Friday', 'last Friday [2024-04-26]'],
    ['next Monday', 'next Monday [2024-05-06]'],
    ['last week', 'last week [week of 2024-04-22]'],
    ['yesterday [2020-01-01]', 'yesterday [2020-01-01]'],
    ['a daytrip to Todayville', 'a daytrip to Todayville'],
  ])('%s', (text, expected) => expect(resolveTimes(text, at)).toBe(expected));

  it('only ever adds to a text, and once', () => {
    const word = fc.constantFrom(
      'today',
      'tomorrow',
      'last',
      'next',
      'week',
      'ago',
      'two',
      'days',
      'in',
      'monday',
      'x',
      '[2024',
      '.',
    );
    fc.assert(
      fc.property(
        fc.array(word).map((words) => words.join(' ')),
        (text) => {
          const once = resolveTimes(text, at);
          expect(once.replace(/ \[(?:week of )?\d{4}(?:-\d\d){0,2}\]/g, '')).toBe(text);
          expect(resolveTimes(once, at)).toBe(once);
        },
      ),
    );
  });
});
