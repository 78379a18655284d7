import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { patternTexts } from '../test/pattern-texts.ts';
import { contractModel, type Plane, type ShapeDef } from './model.ts';
import { patternInputLimit, patternRewrites, textRule, wholeMatch } from './patterns.ts';
import { relaxations } from './relaxations.ts';

const shapes = (['data', 'control'] satisfies Plane[]).flatMap((plane) =>
  Object.entries(contractModel().planes[plane].shapes)
    .filter(([, shape]) => shape.pattern !== undefined)
    .map(([name, shape]) => ({ plane, name, shape })),
);
const patterns = new Map<string, ShapeDef>();
for (const { shape } of shapes) {
  const known = patterns.get(shape.pattern ?? '');
  if (known === undefined || (shape.max ?? patternInputLimit) > (known.max ?? patternInputLimit))
    patterns.set(shape.pattern ?? '', shape);
}

describe('patterns', () => {
  it('of the model are all understood, and match text made from them', () => {
    expect(shapes.length).toBeGreaterThan(300);
    for (const { plane, name, shape } of shapes) {
      const rule = textRule(plane, name, shape);
      for (const text of patternTexts(shape)) expect(rule?.test(text), `${name} ${text}`).toBe(true);
    }
  });

  it('match the whole text, not a part of it', () => {
    const id = wholeMatch('[0-9]{12}');
    expect([id.test('123456789012'), id.test('x123456789012'), id.test('123456789012\n')]).toEqual([
      true,
      false,
      false,
    ]);
    const either = wholeMatch('a$|^b');
    expect([either.test('a'), either.test('b'), either.test('ab'), either.test('a\nb')]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it('that were rewritten mean the same as before', () => {
    expect(patternRewrites.size).toBeGreaterThan(0);
    for (const original of patternRewrites.keys()) {
      const before = new RegExp(`^(?:${original})$`, 'u');
      const after = wholeMatch(original);
      const text = fc.string({ unit: fc.constantFrom('a', 'a', 'a', '.', '-', '\n', ' ', '=', '😀'), maxLength: 12 });
      fc.assert(
        fc.property(text, (t) => after.test(t) === before.test(t)),
        { numRuns: 5000, seed: 1 },
      );
    }
  });

  // Milliseconds that the hostile texts for one pattern take at most.
  function worst(regex: RegExp, seeds: readonly string[], length: number): number {
    let longest = 0;
    for (const seed of seeds) {
      for (const unit of new Set([seed, seed.slice(-1), seed.slice(0, 1), 'a', '-', '/', 'a-', 'a.', '0', ':', '.'])) {
        const flood = unit === '' ? '' : unit.repeat(Math.ceil(length / unit.length));
        for (const text of [`${seed}${flood}`.slice(0, length - 1), flood.slice(0, length - 1)]) {
          const began = performance.now();
          regex.test(`${text}\u0000`);
          longest = Math.max(longest, performance.now() - began);
        }
      }
    }
    return longest;
  }

  it('answer at once on hostile text of the greatest length', { timeout: 120_000 }, () => {
    // The control: what one rewritten pattern takes as the model has it, on a text a hundred times shorter.
    const [original = ''] = patternRewrites.keys();
    const slow = worst(new RegExp(`^(?:${original})$`, 'u'), ['a.a.a'], 400);
    const fast = worst(wholeMatch(original), ['a.a.a'], 400);
    expect(slow).toBeGreaterThan(20 * fast);
    const found: string[] = [];
    const bound = 1000;
    for (const [pattern, shape] of patterns) {
      const length = Math.min(shape.max ?? patternInputLimit, 131_072);
      if (worst(wholeMatch(pattern), patternTexts(shape).slice(0, 3), length) > bound) found.push(pattern);
    }
    for (const { plane, shapes: relaxed, alsoMatches } of relaxations) {
      const length = Math.max(
        ...relaxed.map((name) => contractModel().planes[plane].shapes[name]?.max ?? patternInputLimit),
      );
      if (worst(wholeMatch(alsoMatches), ['host.example/a/b:c', 'http://127.0.0.1/', '{a_b}'], length) > bound)
        found.push(alsoMatches);
    }
    expect(found).toEqual([]);
  });
});
