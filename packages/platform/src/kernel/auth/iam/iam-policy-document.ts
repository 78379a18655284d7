import { errors } from '@agentplatform/contract';
import { compileArn } from './condition-operators.ts';
import { type CompiledCondition, compileCondition } from './iam-policy-condition.ts';
import { compilePrincipals, type PrincipalMatch, type PrincipalTest } from './iam-policy-principal.ts';
import { compileTemplate, parseTemplate, type Template, type Variables } from './iam-policy-text.ts';

/** What hangs on a principal, on a resource, or on a role (who may assume it). */
export type PolicyKind = 'identity' | 'resource' | 'trust';

export interface Statement {
  sid: string | undefined;
  effect: 'Allow' | 'Deny';
  matchesAction(action: string): boolean;
  matchesResource(resource: string, variables: Variables): boolean;
  /** Always `direct` in an identity policy. */
  matchesPrincipal: PrincipalTest;
  conditions: readonly CompiledCondition[];
}

/** A policy that is valid and ready to be evaluated. */
export interface Policy {
  kind: PolicyKind;
  statements: readonly Statement[];
}

/** Characters of a document; those of resources are the wire's own limit (PutResourcePolicy). */
export const MAX_POLICY_CHARS = { identity: 10_240, trust: 10_240, resource: 20_480 } as const;
const MAX_PATTERN_CHARS = 2_048;
const VERSIONS = ['2012-10-17', '2008-10-17'];

/**
 * Reads a policy document (IAM JSON policy language). Throws `ValidationException` naming the element that is wrong,
 * e.g. `Statement[1].Condition.StringLike`.
 */
export function parsePolicy(source: string, kind: PolicyKind): Policy {
  if (source.length > MAX_POLICY_CHARS[kind]) throw wrong('', `is longer than ${MAX_POLICY_CHARS[kind]} characters`);
  let document: unknown;
  try {
    document = JSON.parse(source);
  } catch (error) {
    throw wrong('', `is not JSON (${error instanceof Error ? error.message : 'cannot be read'})`);
  }
  const { Version = '2008-10-17', Id, Statement: body, ...unknown } = members(document, '');
  refuse(unknown, '');
  if (typeof Version !== 'string' || !VERSIONS.includes(Version))
    throw wrong('Version', `must be ${VERSIONS.join(' or ')}`);
  if (Id !== undefined && typeof Id !== 'string') throw wrong('Id', 'must be a string');
  const list = Array.isArray(body) ? body : body === undefined ? [] : [body];
  if (list.length === 0) throw wrong('Statement', 'must hold at least one statement');
  const sids = new Set<string>();
  const statements = list.map((one: unknown, i) => {
    const at = Array.isArray(body) ? `Statement[${i}]` : 'Statement';
    const statement = parseStatement(one, at, kind, Version === '2012-10-17');
    if (statement.sid !== undefined && sids.has(statement.sid)) throw wrong(`${at}.Sid`, 'is used twice');
    if (statement.sid !== undefined) sids.add(statement.sid);
    return statement;
  });
  return { kind, statements };
}

function parseStatement(source: unknown, at: string, kind: PolicyKind, variables: boolean): Statement {
  const { Sid, Effect, Action, NotAction, Resource, NotResource, Principal, NotPrincipal, Condition, ...unknown } =
    members(source, at);
  refuse(unknown, at);
  if (Sid !== undefined && (typeof Sid !== 'string' || !/^[A-Za-z0-9]*$/.test(Sid))) {
    throw wrong(`${at}.Sid`, 'must be letters and digits');
  }
  if (Effect !== 'Allow' && Effect !== 'Deny') throw wrong(`${at}.Effect`, 'must be Allow or Deny');
  return {
    sid: Sid,
    effect: Effect,
    matchesAction: parseActions(Action, NotAction, at),
    matchesResource: parseResources(Resource, NotResource, at, kind, variables),
    matchesPrincipal: parsePrincipals(Principal, NotPrincipal, at, kind),
    conditions: Condition === undefined ? [] : parseConditions(Condition, `${at}.Condition`, variables),
  };
}

function parseActions(yes: unknown, no: unknown, at: string): (action: string) => boolean {
  const [values, name, negated] = oneOf(yes, no, at, 'Action');
  const tests = values.map((value) => {
    if (!/^(\*|[A-Za-z0-9-]+:[A-Za-z0-9*?]+)$/.test(value)) {
      throw wrong(name, `has "${value}", which is neither "*" nor SERVICE:ACTION`);
    }
    return compileTemplate(parseTemplate(value.toLowerCase(), { wildcards: true, variables: false }));
  });
  return (action) => {
    const lower = action.toLowerCase();
    return tests.some((test) => test(lower, nothing)) !== negated;
  };
}

function parseResources(
  yes: unknown,
  no: unknown,
  at: string,
  kind: PolicyKind,
  variables: boolean,
): Statement['matchesResource'] {
  if (kind === 'trust') {
    if (yes !== undefined || no !== undefined) throw wrong(`${at}.Resource`, 'has no place in a trust policy');
    return () => true;
  }
  const [values, name, negated] = oneOf(yes, no, at, 'Resource');
  const tests = values.map((value) =>
    syntax(name, value, () => compileArn(pattern(value, { wildcards: true, variables }))),
  );
  return (resource, values) => tests.some((test) => test(resource, values)) !== negated;
}

function parsePrincipals(yes: unknown, no: unknown, at: string, kind: PolicyKind): PrincipalTest {
  if (kind === 'identity') {
    if (yes !== undefined || no !== undefined) throw wrong(`${at}.Principal`, 'has no place in an identity policy');
    return () => 'direct';
  }
  if ((yes === undefined) === (no === undefined)) throw wrong(at, 'must have either Principal or NotPrincipal');
  const name = `${at}.${yes === undefined ? 'NotPrincipal' : 'Principal'}`;
  const test = syntax(name, undefined, () => compilePrincipals(yes ?? no));
  if (yes !== undefined) return test;
  return (principal): PrincipalMatch => (test(principal) === 'none' ? 'direct' : 'none');
}

function parseConditions(source: unknown, at: string, variables: boolean): CompiledCondition[] {
  return Object.entries(members(source, at)).flatMap(([operator, block]) =>
    Object.entries(members(block, `${at}.${operator}`)).map(([key, value]) => {
      const values = strings(value, `${at}.${operator}.${key}`, true);
      return syntax(`${at}.${operator}`, undefined, () => {
        for (const one of values) assertLength(one);
        return compileCondition(operator, key, values, variables);
      });
    }),
  );
}

function oneOf(yes: unknown, no: unknown, at: string, element: string): [string[], string, boolean] {
  if ((yes === undefined) === (no === undefined)) throw wrong(at, `must have either ${element} or Not${element}`);
  const name = `${at}.${yes === undefined ? 'Not' : ''}${element}`;
  return [strings(yes ?? no, name, false), name, yes === undefined];
}

function strings(value: unknown, at: string, scalars: boolean): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length === 0) throw wrong(at, 'must not be empty');
  return list.map((one) => {
    if (typeof one === 'string') return one;
    if (scalars && (typeof one === 'number' || typeof one === 'boolean')) return String(one);
    throw wrong(at, 'must be a string or a list of strings');
  });
}

function members(value: unknown, at: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(at, 'must be an object');
  return { ...value };
}

function refuse(unknown: Record<string, unknown>, at: string): void {
  const [name] = Object.keys(unknown);
  if (name !== undefined) throw wrong(at === '' ? name : `${at}.${name}`, 'is not an element of the policy language');
}

function pattern(value: string, rules: { wildcards: boolean; variables: boolean }): Template {
  assertLength(value);
  return parseTemplate(value, rules);
}

function assertLength(value: string): void {
  if (value.length > MAX_PATTERN_CHARS)
    throw new SyntaxError(`has a value of more than ${MAX_PATTERN_CHARS} characters`);
}

function syntax<T>(at: string, value: string | undefined, run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw wrong(at, value === undefined ? error.message : `"${value}" ${error.message}`);
  }
}

function wrong(at: string, what: string): Error {
  return errors.invalidField(at === '' ? 'The policy document' : `The policy document's ${at}`, what);
}

const nothing: Variables = () => undefined;
