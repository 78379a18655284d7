import type { DocumentValue } from '../wire-types.ts';
import { maxDepth, report, type Walk } from './walk.ts';

/**
 * Checks a free JSON value: no deeper than `maxDepth`, no number that JSON cannot carry, and no `__proto__` key,
 * which code behind (an assignment, a merge) would turn into a change of prototype.
 */
export function readDocument(value: unknown, walk: Walk): DocumentValue | undefined {
  const problem = documentProblem(value, walk.path.length);
  if (problem === undefined) return value as DocumentValue;
  report(walk, problem);
  return undefined;
}

function documentProblem(value: unknown, depth: number): string | undefined {
  if (depth > maxDepth) return `is nested deeper than ${maxDepth} levels`;
  switch (typeof value) {
    case 'string':
      return value.isWellFormed() ? undefined : 'holds text that is not well-formed Unicode';
    case 'boolean':
      return undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : 'holds a number that is too large';
    case 'object':
      break;
    default:
      return 'must be a JSON value';
  }
  if (value === null) return undefined;
  if (Array.isArray(value)) return firstProblem(value, depth);
  for (const key of Object.keys(value)) {
    if (key === '__proto__') return 'must not have a key named __proto__';
    if (!key.isWellFormed()) return 'holds text that is not well-formed Unicode';
  }
  return firstProblem(Object.values(value), depth);
}

function firstProblem(values: readonly unknown[], depth: number): string | undefined {
  for (const item of values) {
    const problem = documentProblem(item, depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}
