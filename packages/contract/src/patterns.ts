import { LinearPattern } from './linear/linear-pattern.ts';
import type { Plane, ShapeDef } from './model.ts';
import { relaxations } from './relaxations.ts';

/** Text longer than this is refused before a pattern without a `max` of its own looks at it. */
export const patternInputLimit = 8192;

/**
 * Patterns of the model on which `RegExp`, which tries one way after the other, may take more than linear time. These few are
 * matched by `LinearPattern`, which is slower on ordinary text and as fast on hostile text. A test finds them by their structure.
 */
export const ambiguousPatterns: ReadonlySet<string> = new Set([
  '[a-zA-Z0-9][a-zA-Z0-9-_/]*(?::[a-zA-Z0-9-_/]+)*[a-zA-Z0-9-_/]*',
  '[a-zA-Z0-9/*][a-zA-Z0-9-_/*]*(?::[a-zA-Z0-9-_/*]+)*[a-zA-Z0-9-_/*]*',
  '[A-Za-z0-9-_=]+.[A-Za-z0-9-_=]+.[A-Za-z0-9-_=]+',
  '.*([1-9][0-9]{0,4})|([a-zA-Z][a-zA-Z0-9_]{0,47}).*',
  '[^\\s?#]+/\\.well-known/(openid-configuration|oauth-authorization-server)(/[^\\s?#]+)?',
  '(arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}:(([0-9]{12}:custom-model/[a-z0-9-]{1,63}[.]{1}[a-z0-9-]{1,63}/[a-z0-9]{12})|(:foundation-model/[a-z0-9-]{1,63}[.]{1}[a-z0-9-]{1,63}([.:]?[a-z0-9-]{1,63}))|([0-9]{12}:imported-model/[a-z0-9]{12})|([0-9]{12}:provisioned-model/[a-z0-9]{12})|([0-9]{12}:custom-model-deployment/[a-z0-9]{12})|([0-9]{12}:(inference-profile|application-inference-profile)/[a-zA-Z0-9-:.]+)))|([a-z0-9-]{1,63}[.]{1}[a-z0-9-]{1,63}([.:]?[a-z0-9-]{1,63}))|(([0-9a-zA-Z][_-]?)+)|([a-zA-Z0-9-:.]+)|(^(arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}:[0-9]{12}:prompt/[0-9a-zA-Z]{10}(?::[0-9]{1,5})?))$|(^arn:aws:sagemaker:[a-z0-9-]+:[0-9]{12}:endpoint/[a-zA-Z0-9-]+$)|(^arn:aws(-[^:]+)?:bedrock:([0-9a-z-]{1,20}):([0-9]{12}):(default-)?prompt-router/[a-zA-Z0-9-:.]+$)',
  '(arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}:(([0-9]{12}:custom-model/[a-z0-9-]{1,63}[.]{1}[a-z0-9-]{1,63}/[a-z0-9]{12})|(:foundation-model/[a-z0-9-]{1,63}[.]{1}[a-z0-9-]{1,63}([.:]?[a-z0-9-]{1,63}))|([0-9]{12}:imported-model/[a-z0-9]{12})|([0-9]{12}:provisioned-model/[a-z0-9]{12})|([0-9]{12}:custom-model-deployment/[a-z0-9]{12})|([0-9]{12}:(inference-profile|application-inference-profile)/[a-zA-Z0-9-:.]+)))|([a-z0-9-]{1,63}[.]{1}[a-z0-9-]{1,63}([.:]?[a-z0-9-]{1,63}))|(([0-9a-zA-Z][_-]?)+)|([a-zA-Z0-9-:.]+)$|(^(arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}:[0-9]{12}:prompt/[0-9a-zA-Z]{10}(?::[0-9]{1,5})?))$|(^arn:aws:sagemaker:[a-z0-9-]+:[0-9]{12}:endpoint/[a-zA-Z0-9-]+$)|(^arn:aws(-[^:]+)?:bedrock:([0-9a-z-]{1,20}):([0-9]{12}):(default-)?prompt-router/[a-zA-Z0-9-:.]+$)',
  '(arn:aws(-[^:]+)?:bedrock:[a-z0-9-]{1,20}::foundation-model/[a-z0-9-]{1,63}[.]{1}[a-z0-9-]{1,63}([a-z0-9-]{1,63}[.]){0,2}[a-z0-9-]{1,63}([:][a-z0-9-]{1,63}){0,2})|(arn:aws(|-us-gov|-cn|-iso|-iso-b):bedrock:(|[0-9a-z-]{1,20}):(|[0-9]{12}):inference-profile/[a-zA-Z0-9-:.]+)',
]);

/** Those of ids of models count to 63 some twenty times. */
const MOST_STEPS = 4000;

/** A pattern of the model as it is meant: the whole text has to match. Not for texts of clients: see `wholeMatcher`. */
export function wholeMatch(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`, 'u');
}

/** The same in linear time, whatever the text. */
export function wholeMatcher(pattern: string): Pick<RegExp, 'test'> {
  return ambiguousPatterns.has(pattern) ? new LinearPattern(pattern, { maxSteps: MOST_STEPS }) : wholeMatch(pattern);
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
  const own = wholeMatcher(shape.pattern);
  const relaxed = relaxations.find((r) => r.plane === plane && r.shapes.includes(name));
  if (!relaxed) return { test: (text) => own.test(text), rule: `must match the pattern ${shape.pattern}` };
  const more = wholeMatcher(relaxed.alsoMatches);
  return { test: (text) => own.test(text) || more.test(text), rule: `must be ${relaxed.expected}` };
}
