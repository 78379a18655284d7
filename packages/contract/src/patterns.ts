import type { Plane, ShapeDef } from './model.ts';
import { relaxations } from './relaxations.ts';

/** Text longer than this is refused before a pattern without a `max` of its own looks at it. */
export const patternInputLimit = 8192;

/**
 * Patterns of the model that take more than linear time on hostile text, and the same language written so that
 * they do not. A test holds each pair to the same verdicts.
 */
export const patternRewrites: ReadonlyMap<string, string> = new Map([
  [
    // Three runs of word characters joined by any character: with no dot escaped, every split of one long run is tried.
    '[A-Za-z0-9-_=]+.[A-Za-z0-9-_=]+.[A-Za-z0-9-_=]+',
    '[A-Za-z0-9\\-_=]{5,}' +
      '|[A-Za-z0-9\\-_=]{3,}[^A-Za-z0-9\\-_=\\n\\r\\u2028\\u2029][A-Za-z0-9\\-_=]+' +
      '|[A-Za-z0-9\\-_=]+[^A-Za-z0-9\\-_=\\n\\r\\u2028\\u2029][A-Za-z0-9\\-_=]{3,}' +
      '|[A-Za-z0-9\\-_=]+[^A-Za-z0-9\\-_=\\n\\r\\u2028\\u2029][A-Za-z0-9\\-_=]+[^A-Za-z0-9\\-_=\\n\\r\\u2028\\u2029][A-Za-z0-9\\-_=]+',
  ],
]);

/** A pattern of the model as it is meant: the whole text has to match. */
export function wholeMatch(pattern: string): RegExp {
  return new RegExp(`^(?:${patternRewrites.get(pattern) ?? pattern})$`, 'u');
}

/** How a shape's text must look, relaxations included: the test, and the rule in words for who fails it. */
export interface TextRule {
  test(text: string): boolean;
  /** Such as "must match the pattern …". */
  rule: string;
}

/** The rule of a shape; undefined when it has no pattern. */
export function textRule(plane: Plane, name: string, shape: ShapeDef): TextRule | undefined {
  if (shape.pattern === undefined) return undefined;
  const own = wholeMatch(shape.pattern);
  const relaxed = relaxations.find((r) => r.plane === plane && r.shapes.includes(name));
  if (!relaxed) return { test: (text) => own.test(text), rule: `must match the pattern ${shape.pattern}` };
  const more = wholeMatch(relaxed.alsoMatches);
  return { test: (text) => own.test(text) || more.test(text), rule: `must be ${relaxed.expected}` };
}
