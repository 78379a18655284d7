import { namespaceKey } from '../../namespace-key.ts';
import { operators } from './condition-operators.ts';
import type { Variables } from './iam-policy-text.ts';

/** The values of a condition key in the request, by lower-case key; `undefined` when the request has none. */
export type ContextLookup = (key: string) => readonly string[] | undefined;

export type CompiledCondition = (context: ContextLookup, variables: Variables) => boolean;

/**
 * Keys whose values are places in a memory. Slashes at the end name no other place, so a place has two names, without and with one, and a
 * test that holds for one of them holds for the place: no spelling passes by a Deny, or misses an Allow, that another meets.
 */
const PLACES = new Set(['bedrock-agentcore:namespace', 'bedrock-agentcore:namespacepath']);

const OF_RESOURCE_TAGS = /^[a-z0-9-]+:resourcetag\//;

/**
 * One key under one operator. Values of the policy are alternatives (for negated operators: none may match). Without a
 * set prefix, several values in the request are alternatives too. A key that the request lacks fails, except for negated
 * operators, `…IfExists` and `ForAllValues:`. Throws `SyntaxError`.
 */
export function compileCondition(
  name: string,
  key: string,
  wanted: readonly string[],
  variables: boolean,
): CompiledCondition {
  if (!/^[A-Za-z0-9-]+:\S+$/.test(key)) throw new SyntaxError(`has "${key}" where a condition key belongs`);
  const lowerKey = key.toLowerCase();
  // It would never match, and a Deny that never matches is worse than none.
  if (OF_RESOURCE_TAGS.test(lowerKey)) throw new SyntaxError(`has "${key}", but tags of resources are not looked at`);
  const [, set, base, ifExists] = /^(?:(ForAnyValue|ForAllValues):)?(\w+?)(IfExists)?$/i.exec(name) ?? [];
  const operator = base?.toLowerCase();
  if (operator === 'null') return compileNull(lowerKey, wanted, set !== undefined || ifExists !== undefined);
  const known = operators.get(operator ?? '');
  if (!known) throw new SyntaxError('is not a condition operator');
  const isPlace = PLACES.has(lowerKey);
  const tests = wanted.map((value) => known.compile(isPlace ? value.replace(/\/{2,}$/, '/') : value, variables));
  const { negated } = known;
  const one = (actual: string, values: Variables): boolean =>
    (isPlace ? namesOf(actual) : [actual]).some((name) => tests.some((test) => test(name, values))) !== negated;
  const missing = ifExists !== undefined || (set === undefined ? negated : set.toLowerCase() === 'forallvalues');
  const every = set === undefined ? negated : set.toLowerCase() === 'forallvalues';
  return (context, values) => {
    const actual = context(lowerKey);
    if (actual === undefined || actual.length === 0) return missing;
    return every ? actual.every((value) => one(value, values)) : actual.some((value) => one(value, values));
  };
}

function namesOf(place: string): string[] {
  const bare = namespaceKey(place);
  return [bare, `${bare}/`];
}

function compileNull(key: string, wanted: readonly string[], decorated: boolean): CompiledCondition {
  if (decorated) throw new SyntaxError('takes neither a set prefix nor IfExists');
  const absent = wanted.map((value) => {
    if (value !== 'true' && value !== 'false') throw new SyntaxError(`has "${value}" where true or false belongs`);
    return value === 'true';
  });
  return (context) => {
    const actual = context(key);
    return absent.includes(actual === undefined || actual.length === 0);
  };
}
