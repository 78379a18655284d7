import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parsePolicy } from './iam-policy-document.ts';
import { evaluate } from './iam-policy-evaluator.ts';
import type { PrincipalIdentity } from './iam-policy-principal.ts';
import { compileTemplate, parseTemplate } from './iam-policy-text.ts';

const ACCOUNT = '111122223333';
const USER: PrincipalIdentity = {
  arn: `arn:aws:iam::${ACCOUNT}:user/ann`,
  accountId: ACCOUNT,
  roleArn: undefined,
  service: undefined,
};
const RUNTIME = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:runtime/a`;
type Context = Record<string, string[]>;

function ask(
  statements: object | object[],
  over: { action?: string; resource?: string; context?: Context; principal?: PrincipalIdentity; version?: string } = {},
  kind: 'identity' | 'resource' | 'trust' = 'identity',
): string {
  const policy = parsePolicy(JSON.stringify({ Version: over.version ?? '2012-10-17', Statement: statements }), kind);
  const context = new Map(Object.entries(over.context ?? {}).map(([key, values]) => [key.toLowerCase(), values]));
  const verdict = evaluate([policy], {
    principal: over.principal ?? USER,
    action: over.action ?? 'bedrock-agentcore:InvokeAgentRuntime',
    resource: over.resource ?? RUNTIME,
    context: (key) => context.get(key),
  });
  return verdict.effect === 'Allow' && verdict.match === 'account' ? 'Account' : verdict.effect;
}

const allow = { Effect: 'Allow', Action: '*', Resource: '*' };

describe('statements', () => {
  it('deny by default, allow, and deny before all', () => {
    expect(ask({ ...allow, Action: 'bedrock-agentcore:GetMemory' })).toBe('None');
    expect(ask(allow)).toBe('Allow');
    expect(ask([allow, { ...allow, Effect: 'Deny' }])).toBe('Deny');
    expect(ask([{ ...allow, Effect: 'Deny', Action: 'iam:*' }, allow])).toBe('Allow');
  });

  it.each([
    ['bedrock-agentcore:InvokeAgentRuntime', 'Allow'],
    ['BEDROCK-AGENTCORE:invokeagentruntime', 'Allow'],
    ['bedrock-agentcore:Invoke*', 'Allow'],
    ['bedrock-agentcore:*Runtime', 'Allow'],
    ['bedrock-agentcore:?nvokeAgentRuntime', 'Allow'],
    ['bedrock-agentcore:InvokeAgentRuntime?', 'None'],
    ['bedrock-agentcore:Invoke', 'None'],
    ['iam:*', 'None'],
  ])('action %s: %s', (Action, expected) => expect(ask({ ...allow, Action })).toBe(expected));

  it.each([
    [RUNTIME, 'Allow'],
    [`${RUNTIME.slice(0, -1)}*`, 'Allow'],
    [`arn:aws:bedrock-agentcore:*:${ACCOUNT}:*`, 'Allow'],
    ['arn:*:*:*:*:runtime/?', 'Allow'],
    [RUNTIME.toUpperCase(), 'None'],
    ['arn:aws:bedrock-agentcore:*:*:runtime/a', 'Allow'],
    // A wildcard before the last part does not reach over a colon.
    ['arn:aws:bedrock*:us-east-1:111122223333:memory/a', 'None'],
    ['arn:*:x:y:z:*', 'None'],
  ])('resource %s: %s', (Resource, expected) => expect(ask({ ...allow, Resource })).toBe(expected));

  it('NotAction and NotResource', () => {
    expect(ask({ Effect: 'Allow', NotAction: 'iam:*', Resource: '*' })).toBe('Allow');
    expect(ask({ Effect: 'Allow', NotAction: ['iam:*', 'bedrock-agentcore:*'], Resource: '*' })).toBe('None');
    expect(ask({ Effect: 'Deny', Action: '*', NotResource: RUNTIME })).toBe('None');
    expect(ask({ Effect: 'Deny', Action: '*', NotResource: RUNTIME }, { resource: `${RUNTIME}b` })).toBe('Deny');
  });

  it('a wildcard in the asked resource stands for itself', () => {
    expect(ask({ ...allow, Resource: RUNTIME }, { resource: RUNTIME.replace(/a$/, '*') })).toBe('None');
    expect(ask({ ...allow, Resource: RUNTIME.replace(/a$/, '*') }, { resource: RUNTIME.replace(/a$/, '*') })).toBe(
      'Allow',
    );
    expect(ask({ ...allow, Resource: RUNTIME }, { resource: '*' })).toBe('None');
  });
});

describe('principals', () => {
  const role = `arn:aws:iam::${ACCOUNT}:role/r`;
  const session: PrincipalIdentity = {
    arn: `arn:aws:sts::${ACCOUNT}:assumed-role/r/s`,
    accountId: ACCOUNT,
    roleArn: role,
    service: undefined,
  };
  const bearer: PrincipalIdentity = { arn: undefined, accountId: ACCOUNT, roleArn: undefined, service: undefined };
  const service: PrincipalIdentity = { ...bearer, service: 'bedrock-agentcore.amazonaws.com' };
  it.each<[unknown, PrincipalIdentity, string]>([
    ['*', USER, 'Allow'],
    ['*', bearer, 'Allow'],
    [{ AWS: '*' }, session, 'Allow'],
    [{ AWS: USER.arn }, USER, 'Allow'],
    [{ AWS: USER.arn }, session, 'None'],
    [{ AWS: [role, USER.arn] }, session, 'Allow'],
    [{ AWS: session.arn }, session, 'Allow'],
    [{ AWS: session.arn }, { ...session, arn: `${session.arn}2` }, 'None'],
    [{ AWS: ACCOUNT }, USER, 'Account'],
    [{ AWS: `arn:aws:iam::${ACCOUNT}:root` }, session, 'Account'],
    [{ AWS: [ACCOUNT, role] }, session, 'Allow'],
    [{ AWS: '999999999999' }, USER, 'None'],
    [{ AWS: ACCOUNT }, bearer, 'None'],
    [{ AWS: `arn:aws:iam::${ACCOUNT}:root` }, { ...USER, arn: `arn:aws:iam::${ACCOUNT}:root` }, 'Allow'],
    [{ Service: 'bedrock-agentcore.amazonaws.com' }, service, 'Allow'],
    [{ Service: 'lambda.amazonaws.com' }, service, 'None'],
    [{ Service: 'bedrock-agentcore.amazonaws.com' }, USER, 'None'],
  ])('%j for %j: %s', (Principal, principal, expected) => {
    expect(ask({ ...allow, Principal }, { principal }, 'resource')).toBe(expected);
    const { Resource: _, ...trust } = { ...allow, Action: 'sts:AssumeRole', Principal };
    expect(ask(trust, { principal, action: 'sts:AssumeRole' }, 'trust')).toBe(expected);
  });

  it('NotPrincipal', () => {
    const deny = { Effect: 'Deny', Action: '*', Resource: '*', NotPrincipal: { AWS: role } };
    expect(ask(deny, { principal: session }, 'resource')).toBe('None');
    expect(ask(deny, { principal: USER }, 'resource')).toBe('Deny');
    expect(ask(deny, { principal: bearer }, 'resource')).toBe('Deny');
  });
});

describe('conditions', () => {
  const when = (Condition: object, context: Context = {}): boolean =>
    ask({ ...allow, Condition }, { context }) === 'Allow';
  const actor = 'bedrock-agentcore:actorId';

  it.each<[string, string | number | boolean | string[], string[], boolean]>([
    ['StringEquals', 'ann', ['ann'], true],
    ['StringEquals', 'ann', ['Ann'], false],
    ['StringEquals', 'a*', ['ann'], false],
    ['StringEquals', ['bob', 'ann'], ['ann'], true],
    ['StringEquals', 'ann', [], false],
    ['StringNotEquals', 'ann', ['bob'], true],
    ['StringNotEquals', ['bob', 'ann'], ['ann'], false],
    ['StringNotEquals', 'ann', [], true],
    ['StringNotEquals', 'ann', ['bob', 'ann'], false],
    ['StringEqualsIgnoreCase', 'aNN', ['Ann'], true],
    ['StringNotEqualsIgnoreCase', 'aNN', ['Ann'], false],
    ['StringLike', 'a*n?', ['abcnd'], true],
    ['StringLike', 'a*n?', ['abcn'], false],
    ['StringNotLike', 'a*', ['bob'], true],
    ['StringEqualsIfExists', 'ann', [], true],
    ['StringEqualsIfExists', 'ann', ['bob'], false],
    ['ForAnyValue:StringEquals', ['a', 'b'], ['x', 'b'], true],
    ['ForAnyValue:StringEquals', ['a', 'b'], [], false],
    ['ForAllValues:StringEquals', ['a', 'b'], ['a', 'b'], true],
    ['ForAllValues:StringEquals', ['a', 'b'], ['a', 'x'], false],
    ['ForAllValues:StringEquals', ['a', 'b'], [], true],
    ['ForAnyValue:StringNotEquals', 'a', ['a', 'b'], true],
    ['ForAllValues:StringNotLike', 'a*', ['b', 'ab'], false],
    ['ArnLike', 'arn:aws:iam::*:user/*', ['arn:aws:iam::1:user/a'], true],
    ['ArnEquals', 'arn:aws:iam::*:user/*', ['arn:aws:iam::1:user/a'], true],
    ['ArnLike', 'arn:aws:*:user/x:::', ['arn:aws:iam::1:user/x'], false],
    ['ArnNotLike', 'arn:aws:iam::*:user/*', ['arn:aws:iam::1:role/a'], true],
    ['ArnLike', 'arn:aws:iam::*:user/*', ['not an arn'], false],
    ['NumericEquals', 5, ['5.0'], true],
    ['NumericLessThan', '10', ['9'], true],
    ['NumericLessThan', '10', ['abc'], false],
    ['NumericGreaterThanEquals', '10', ['10'], true],
    ['NumericNotEquals', '10', ['11'], true],
    ['DateGreaterThan', '2026-01-01T00:00:00Z', ['2026-06-01T00:00:00Z'], true],
    ['DateLessThan', '2026-01-01', ['1767225599'], true],
    ['Bool', true, ['true'], true],
    ['Bool', 'false', ['true'], false],
    ['Bool', 'true', [], false],
    ['BinaryEquals', 'QmFzZTY0', ['QmFzZTY0'], true],
    ['IpAddress', '10.0.0.0/8', ['10.1.2.3'], true],
    ['IpAddress', '10.0.0.0/8', ['::ffff:10.1.2.3'], true],
    ['IpAddress', ['10.0.0.0/8', 'fd00::/8'], ['fd12::1'], true],
    ['IpAddress', '10.0.0.0/8', ['11.1.2.3'], false],
    ['IpAddress', '10.0.0.0/8', ['garbage'], false],
    ['NotIpAddress', '10.0.0.0/8', ['11.1.2.3'], true],
    ['Null', 'true', [], true],
    ['Null', 'true', ['x'], false],
    ['Null', 'false', ['x'], true],
    ['Null', 'false', [], false],
    ['stringequals', 'ann', ['ann'], true],
  ])('%s %j against %j: %s', (operator, wanted, actual, expected) => {
    expect(when({ [operator]: { [actor]: wanted } }, actual.length === 0 ? {} : { [actor]: actual })).toBe(expected);
  });

  it('keys ignore case; all keys and operators must hold', () => {
    const both = {
      StringEquals: { [actor]: 'ann', 'bedrock-agentcore:sessionId': 's' },
      Bool: { 'aws:SecureTransport': 'true' },
    };
    const context = {
      'BEDROCK-AGENTCORE:ACTORID': ['ann'],
      'bedrock-agentcore:sessionid': ['s'],
      'aws:securetransport': ['true'],
    };
    expect(when(both, context)).toBe(true);
    for (const key of Object.keys(context)) expect(when(both, { ...context, [key]: ['x'] })).toBe(false);
  });

  it('variables: in resources and values, never as wildcards, and only in version 2012-10-17', () => {
    const tag = 'aws:PrincipalTag/team';
    const own = { ...allow, Resource: `arn:aws:bedrock-agentcore:*:*:memory/\${${tag}}-*` };
    const memory = (name: string) => `arn:aws:bedrock-agentcore:us-east-1:1:memory/${name}`;
    expect(ask(own, { resource: memory('red-1'), context: { [tag]: ['red'] } })).toBe('Allow');
    expect(ask(own, { resource: memory('blue-1'), context: { [tag]: ['red'] } })).toBe('None');
    expect(ask(own, { resource: memory('blue-1'), context: { [tag]: ['*'] } })).toBe('None');
    expect(ask(own, { resource: memory('-1') })).toBe('None');
    expect(ask(own, { resource: memory('red-1'), context: { [tag]: ['red'] }, version: '2008-10-17' })).toBe('None');
    expect(when({ StringEquals: { [actor]: `\${${tag}}` } }, { [actor]: ['red'], [tag]: ['red'] })).toBe(true);
    expect(when({ StringEquals: { [actor]: `\${${tag}}` } }, { [actor]: ['red'] })).toBe(false);
    expect(when({ StringLike: { [actor]: `x\${${tag}, 'none'}` } }, { [actor]: ['xnone'] })).toBe(true);
    expect(when({ StringLike: { [actor]: 'a$' + '{*}' } }, { [actor]: ['a*'] })).toBe(true);
    expect(when({ StringLike: { [actor]: 'a$' + '{*}' } }, { [actor]: ['ab'] })).toBe(false);
    expect(when({ StringNotEquals: { [actor]: `\${${tag}}` } }, { [actor]: ['red'], [tag]: ['red'] })).toBe(false);
  });
});

describe('a document is refused with the element at fault', () => {
  const statement = (over: object): string =>
    JSON.stringify({ Version: '2012-10-17', Statement: [{ ...allow, ...over }] });
  it.each<[string, RegExp]>([
    ['{', /not JSON/],
    ['[]', /must be an object/],
    ['{}', /Statement must hold at least one/],
    ['{"Version":"2020-01-01","Statement":[]}', /Version must be/],
    ['{"Statements":[]}', /Statements is not an element/],
    [JSON.stringify({ Statement: [allow, { ...allow, Effect: 'allow' }] }), /Statement\[1\]\.Effect must be/],
    [statement({ Sid: 'a-b' }), /Sid must be letters/],
    [
      JSON.stringify({
        Statement: [
          { ...allow, Sid: 'a' },
          { ...allow, Sid: 'a' },
        ],
      }),
      /Statement\[1\]\.Sid is used twice/,
    ],
    [statement({ NotAction: '*' }), /either Action or NotAction/],
    [statement({ Action: [] }), /Action must not be empty/],
    [statement({ Action: 5 }), /Action must be a string/],
    [statement({ Action: 'Invoke' }), /Action has "Invoke"/],
    [statement({ Resource: 'runtime/a' }), /Resource "runtime\/a" is neither/],
    [statement({ Resource: 'arn:aws:s3*' }), /is neither "\*" nor an ARN/],
    [statement({ Resource: '$' + '{aws:x' }), /unclosed/],
    [statement({ Resource: '$' + '{x}' }), /bad policy variable/],
    [statement({ Resource: `arn:aws:s3:::${'a'.repeat(2_050)}` }), /more than 2048/],
    [statement({ Principal: '*' }), /Principal has no place/],
    [
      statement({ Effect: 'Deny', Condition: { StringEquals: { 'aws:ResourceTag/env': 'prod' } } }),
      /"aws:ResourceTag\/env", but tags of resources are not looked at/,
    ],
    [statement({ Condition: { StringIs: { 'a:b': 'c' } } }), /Condition\.StringIs is not a condition operator/],
    [statement({ Condition: { StringEquals: { ab: 'c' } } }), /condition key/],
    [statement({ Condition: { StringEquals: 'c' } }), /StringEquals must be an object/],
    [statement({ Condition: { NumericEquals: { 'a:b': 'c' } } }), /where a number belongs/],
    [statement({ Condition: { DateEquals: { 'a:b': 'tomorrow' } } }), /where a date belongs/],
    [statement({ Condition: { Bool: { 'a:b': 'yes' } } }), /where true or false/],
    [statement({ Condition: { IpAddress: { 'a:b': '10.0.0.0/99' } } }), /address or CIDR/],
    [statement({ Condition: { ArnLike: { 'a:b': 'x' } } }), /neither "\*" nor an ARN/],
    [statement({ Condition: { NullIfExists: { 'a:b': 'true' } } }), /takes neither/],
    [`{"Statement":"${'x'.repeat(10_300)}"}`, /longer than 10240/],
  ])('%s', (source, message) => expect(() => parsePolicy(source, 'identity')).toThrow(message));

  it.each<[unknown, RegExp]>([
    [undefined, /either Principal or NotPrincipal/],
    [{}, /names nobody/],
    [{ AWS: 'arn:aws:iam::111122223333:user/*' }, /wildcards are not allowed/],
    [{ AWS: 'arn:aws:iam::111122223333' }, /which is not an account/],
    [{ Federated: 'x' }, /type "Federated"/],
    [{ Service: 'x' }, /not a service/],
    ['ann', /must be "\*" or an object/],
  ])('principal %j', (Principal, message) => {
    const source = JSON.stringify({ Statement: { Effect: 'Allow', Action: 'sts:AssumeRole', Principal } });
    expect(() => parsePolicy(source, 'trust')).toThrow(message);
  });

  it('whatever the text, with a ValidationException alone', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.anything().map((a) => String(JSON.stringify({ Statement: a }))),
        ),
        (text) => {
          try {
            parsePolicy(text, 'identity');
          } catch (error) {
            expect(error).toMatchObject({ code: 'ValidationException' });
          }
        },
      ),
    );
  });
});

describe('against a naive reading of the same documents', () => {
  const like = (pattern: string, text: string): boolean =>
    pattern === ''
      ? text === ''
      : pattern[0] === '*'
        ? like(pattern.slice(1), text) || (text !== '' && like(pattern, text.slice(1)))
        : text !== '' && (pattern[0] === '?' || pattern[0] === text[0]) && like(pattern.slice(1), text.slice(1));

  it('wildcards', () => {
    const char = fc.constantFrom('a', 'b', '*', '?');
    fc.assert(
      fc.property(
        fc.string({ unit: char, maxLength: 8 }),
        fc.string({ unit: char, maxLength: 10 }),
        (pattern, text) => {
          const compiled = compileTemplate(parseTemplate(pattern, { wildcards: true, variables: true }));
          expect(compiled(text, () => undefined)).toBe(like(pattern, text));
        },
      ),
      { numRuns: 3_000 },
    );
  });

  // Its time-out is the assertion: a matcher that tries every way would never end.
  it('no pattern takes long', { timeout: 30_000 }, () => {
    const compiled = compileTemplate(parseTemplate(`${'*a'.repeat(1_000)}b`, { wildcards: true, variables: false }));
    expect(compiled('a'.repeat(2_048), () => undefined)).toBe(false);
  });

  interface Plain {
    Effect: string;
    Action?: string[];
    NotAction?: string[];
    Resource?: string[];
    NotResource?: string[];
    Condition?: Record<string, Record<string, string[]>>;
  }
  const arnLike = (pattern: string, text: string): boolean => {
    if (pattern === '*') return true;
    const [p, t] = [pattern.split(':'), text.split(':')];
    return p.length === t.length && p.every((part, i) => like(part, t[i] ?? ''));
  };
  const holds = (operator: string, wanted: string[], actual: string[] | undefined): boolean => {
    const test = (value: string): boolean =>
      wanted.some((w) => (operator.includes('Like') ? like(w, value) : w === value)) !== operator.includes('Not');
    if (actual === undefined)
      return (
        operator.endsWith('IfExists') ||
        operator.startsWith('ForAll') ||
        (operator.includes('Not') && !operator.startsWith('ForAny'))
      );
    if (operator.startsWith('ForAll')) return actual.every(test);
    if (operator.startsWith('ForAny')) return actual.some(test);
    return operator.includes('Not') ? actual.every(test) : actual.some(test);
  };
  const applies = (s: Plain, action: string, resource: string, context: Context): boolean =>
    (s.Action
      ? s.Action.some((a) => like(a.toLowerCase(), action.toLowerCase()))
      : !s.NotAction?.some((a) => like(a.toLowerCase(), action.toLowerCase()))) &&
    (s.Resource ? s.Resource.some((r) => arnLike(r, resource)) : !s.NotResource?.some((r) => arnLike(r, resource))) &&
    Object.entries(s.Condition ?? {}).every(([operator, block]) =>
      Object.entries(block).every(([key, wanted]) => holds(operator, wanted, context[key])),
    );

  it('evaluation', () => {
    const action = fc.constantFrom('s:Get', 's:Put', 't:Get');
    const actions = fc.array(fc.constantFrom('*', 's:*', 's:G?t', 't:Get', 'S:PUT'), { minLength: 1, maxLength: 2 });
    const name = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 3 });
    const resource = fc.tuple(fc.constantFrom('r1', 'r2'), name).map(([region, id]) => `arn:aws:s:${region}:1:${id}`);
    const resources = fc.array(
      fc.oneof(
        fc.constant('*'),
        resource,
        fc
          .tuple(fc.constantFrom('r1', 'r?', '*'), fc.constantFrom('*', 'a*', '?b'))
          .map(([r, i]) => `arn:*:s:${r}:1:${i}`),
      ),
      { minLength: 1, maxLength: 2 },
    );
    const operator = fc.constantFrom(
      'StringEquals',
      'StringNotEquals',
      'StringLike',
      'StringNotLike',
      'StringEqualsIfExists',
      'StringNotLikeIfExists',
      'ForAnyValue:StringEquals',
      'ForAllValues:StringLike',
      'ForAnyValue:StringNotEquals',
      'ForAllValues:StringNotEquals',
    );
    const key = fc.constantFrom('k:one', 'k:two');
    const values = fc.array(fc.constantFrom('a', 'b', 'a*', '?'), { minLength: 1, maxLength: 2 });
    const statement = fc
      .record({
        Effect: fc.constantFrom('Allow', 'Deny'),
        action: fc.tuple(fc.constantFrom('Action', 'NotAction'), actions),
        resource: fc.tuple(fc.constantFrom('Resource', 'NotResource'), resources),
        Condition: fc.option(
          fc.dictionary(operator, fc.dictionary(key, values, { minKeys: 1, maxKeys: 2 }), { maxKeys: 2 }),
          { nil: undefined },
        ),
      })
      .map(({ action, resource, ...rest }): Plain => ({ ...rest, [action[0]]: action[1], [resource[0]]: resource[1] }));
    const context = fc.dictionary(key, fc.array(fc.constantFrom('a', 'b', 'ab'), { minLength: 1, maxLength: 2 }), {
      maxKeys: 2,
    });
    fc.assert(
      fc.property(
        fc.array(statement, { minLength: 1, maxLength: 4 }),
        action,
        resource,
        context,
        (statements, action, resource, context) => {
          const hit = statements.filter((s) => applies(s, action, resource, context)).map((s) => s.Effect);
          const expected = hit.includes('Deny') ? 'Deny' : hit.includes('Allow') ? 'Allow' : 'None';
          expect(ask(statements, { action, resource, context })).toBe(expected);
        },
      ),
      { numRuns: 3_000 },
    );
  });
});
