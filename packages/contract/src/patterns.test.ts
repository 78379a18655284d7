import { describe, expect, it } from 'vitest';
import { takesLinearTime } from '../test/ambiguity.ts';
import { patternTexts } from '../test/pattern-texts.ts';
import { LinearPattern } from './linear/linear-pattern.ts';
import { UnsupportedPatternError } from './linear/pattern-syntax.ts';
import { contractModel, planes, type ShapeDef } from './model.ts';
import { ambiguousPatterns, patternInputLimit, textRule, wholeMatch } from './patterns.ts';
import { relaxations } from './relaxations.ts';

const shapes = planes.flatMap((plane) =>
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

  it('take linear time on every text, by their structure, or are matched by what always does', () => {
    // The control: ways through these grow without bound.
    for (const slow of ['(a+)+b', 'a*a*b', '(a|a)*b', '(a*)*b', '([a-z]+x)*', '[a-z]*.*', '(-+|__)*', '(ab|a)*b?(ab)*'])
      expect(takesLinearTime(slow), slow).toBe(false);
    for (const fast of ['a+b+', '(a|b)*', '(?:/[a-z]+)*', '(ab|a)(bc|c)*', '[a-z]{1,300}-[a-z]{10}', 'a?a?a?b', '.*'])
      expect(takesLinearTime(fast), fast).toBe(true);
    const all = [...patterns.keys(), ...relaxations.map((relaxation) => relaxation.alsoMatches)];
    expect(new Set(all.filter((pattern) => !takesLinearTime(pattern)))).toEqual(ambiguousPatterns);
  });

  it('mean the same to both ways of matching', () => {
    let compared = 0;
    for (const [pattern, shape] of patterns) {
      const linear = linearPattern(pattern);
      if (!linear) continue;
      compared += 1;
      const native = wholeMatch(pattern);
      for (const text of patternTexts(shape)) {
        const middle = Math.floor(text.length / 2);
        const altered = [text.slice(1), `${text}\n`, `${text}é`, `${text.slice(0, middle)}!${text.slice(middle)}`];
        for (const one of [text, ...altered]) expect(linear.test(one), `${pattern} ${one}`).toBe(native.test(one));
      }
    }
    expect(compared).toBeGreaterThan(patterns.size - 10);
  });
});

/** Undefined for the few that look ahead or count to a thousand; none of those needs it. */
function linearPattern(pattern: string): LinearPattern | undefined {
  try {
    return new LinearPattern(pattern, { maxSteps: 4000 });
  } catch (error) {
    if (error instanceof UnsupportedPatternError) return undefined;
    throw error;
  }
}
