import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LinearPattern } from './linear-pattern.ts';
import { UnsupportedPatternError } from './pattern-syntax.ts';

const seed = 20261122;

/** Regular expressions, by their parts. */
const sources = fc.letrec<{ source: string }>((tie) => ({
  source: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom(
      'a',
      'b',
      'ab',
      '.',
      '[ab]',
      '[^a]',
      '\\d',
      '\\W',
      '\\-',
      '\\x61',
      '\\u0062',
      '^',
      '$',
      '[\\]a]',
      '{',
    ),
    fc.tuple(tie('source'), tie('source')).map(([x, y]) => `${x}${y}`),
    fc.tuple(tie('source'), tie('source')).map(([x, y]) => `(?:${x}|${y})`),
    fc
      .tuple(tie('source'), fc.constantFrom('*', '+', '?', '*?', '{2}', '{1,3}', '{0,2}?', '{2,}'))
      .map(([x, times]) => `(${x})${times}`),
  ),
})).source;
const texts = fc.string({ unit: fc.constantFrom('a', 'b', '-', '1', '\n', '{', ']', 'é', '😀'), maxLength: 8 });

describe('LinearPattern', () => {
  it('judges whole texts as RegExp does', () => {
    let matched = 0;
    fc.assert(
      fc.property(sources, fc.array(texts, { maxLength: 8 }), (source, list) => {
        const linear = new LinearPattern(source);
        const unicode = !source.includes('{{') && isUnicode(source);
        const native = new RegExp(`^(?:${source})$`, unicode ? 'u' : '');
        for (const text of unicode ? list : list.filter((one) => !one.includes('😀'))) {
          expect(linear.test(text), `${source} on ${JSON.stringify(text)}`).toBe(native.test(text));
          if (native.test(text)) matched += 1;
        }
      }),
      { numRuns: 3000, seed },
    );
    expect(matched).toBeGreaterThan(500);
  });

  it('answers on text that sends RegExp back again and again, and forgets what it need not keep', () => {
    // Each of these has more ways through it than there are atoms.
    expect(new LinearPattern('(a|a)*b').test('a'.repeat(100_000))).toBe(false);
    expect(new LinearPattern('(([a-z]+)+)+').test(`${'a'.repeat(100_000)}!`)).toBe(false);
    expect(new LinearPattern('(a?){50}a{50}').test('a'.repeat(50))).toBe(true);
    // Its automaton has 2^21 states when all are made.
    const wide = new LinearPattern('[ab]*a[ab]{20}');
    const text = Array.from({ length: 20_000 }, (_, index) => ((index * index) % 7 < 3 ? 'a' : 'b')).join('');
    expect(wide.test(text)).toBe(text.at(-21) === 'a');
  });

  it.each(['(?=a)b', '(?!a)b', '(?<=a)b', '(?<!a)b', '(a)\\1', '(?<x>a)\\k<x>', '\\bfoo', 'foo\\B'])(
    'says that it cannot match %s',
    (source) => {
      expect(() => new LinearPattern(source)).toThrow(UnsupportedPatternError);
    },
  );

  it.each(['a{1000000}', '(((((a{9}){9}){9}){9}){9}){9}', '((((){99}){99}){99}){99}', `${'a'.repeat(4097)}`])(
    'refuses the bomb %.40s without building it',
    (source) => {
      expect(() => new LinearPattern(source)).toThrow(UnsupportedPatternError);
    },
  );

  it.each(['(', '[a', 'a**', '*a', 'a{2,1}', '\\'])('says that %s is no regular expression', (source) => {
    expect(() => new LinearPattern(source)).toThrow(SyntaxError);
  });

  it('reads no text of a user as anything but a pattern: it never throws but what it says', () => {
    const parts = fc.constantFrom(
      '(',
      ')',
      '[',
      ']',
      '{',
      '}',
      '*',
      '+',
      '?',
      '|',
      '\\',
      '^',
      '$',
      'a',
      '1',
      ',',
      '<',
      ':',
      '=',
      '-',
    );
    fc.assert(
      fc.property(fc.string({ unit: parts, maxLength: 12 }), (source) => {
        try {
          new LinearPattern(source).test('a1');
        } catch (error) {
          if (!(error instanceof SyntaxError) && !(error instanceof UnsupportedPatternError)) throw error;
        }
      }),
      { numRuns: 5000, seed },
    );
  });
});

function isUnicode(source: string): boolean {
  try {
    new RegExp(source, 'u');
    return true;
  } catch {
    return false;
  }
}
