import { LinearPattern, UnsupportedPatternError } from '@agentplatform/contract';

/** Steps of one pattern; `[a-z]{1,128}` has 257. */
const MOST_STEPS = 1000;

/** A pattern that matches anywhere in a text, as JSON Schema has it. */
export type SearchPattern = Pick<LinearPattern, 'test' | 'size'>;

/**
 * A `pattern` of a schema, matched in linear time (ADR 21). Undefined for one that cannot be: what looks around, refers back or is too long.
 * Such a pattern is left to the backend, and whoever takes in the schema says so.
 */
export function searchPattern(source: string): SearchPattern | undefined {
  try {
    return new LinearPattern(`[\\s\\S]*(?:${source})[\\s\\S]*`, { maxSteps: MOST_STEPS });
  } catch (error) {
    if (error instanceof UnsupportedPatternError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
