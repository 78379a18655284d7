import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evaluate, parsePolicy } from '../../kernel/auth/index.ts';
import { conditionsOf } from './conditions.ts';
import { namespaceKey } from './namespaces.ts';

const NAMESPACE = 'bedrock-agentcore:namespace';
const PATH = 'bedrock-agentcore:namespacePath';
const at = new Date(0);

type Sets = Record<string, string> | Record<string, string>[];

/** What a policy of these statements says to each set of condition keys. */
function verdicts(statements: object[], sets: Sets): string[] {
  const Statement = statements.map((one) => ({ Effect: 'Deny', Action: '*', Resource: '*', ...one }));
  const policy = parsePolicy(JSON.stringify({ Version: '2012-10-17', Statement }), 'identity');
  const principal = { arn: 'a', accountId: '1', roleArn: undefined, service: undefined };
  return [sets].flat().map((set) => {
    const keys = new Map(Object.entries(set).map(([key, value]) => [key.toLowerCase(), [value]]));
    const context = (key: string) => keys.get(key);
    return evaluate([policy], { principal, action: 's:Do', resource: 'arn:a:b:c:d:e', context }).effect;
  });
}

/** Every way of a request to name a place. */
const ways: Record<string, (place: string) => Sets> = {
  namespace: (namespace) => conditionsOf.namespace({ namespace }),
  namespacePath: (namespacePath) => conditionsOf.namespace({ namespacePath }),
  created: (place) =>
    conditionsOf.createdRecords({
      records: [{ requestIdentifier: 'r', namespaces: [place], content: { text: 't' }, timestamp: at }],
    }),
  'updated from': (place) =>
    conditionsOf.updatedRecords({ records: [{ memoryRecordId: 'm', timestamp: at, sourceNamespaces: [place] }] }),
  'updated to': (place) =>
    conditionsOf.updatedRecords({ records: [{ memoryRecordId: 'm', timestamp: at, namespaces: [place] }] }).slice(1),
  deleted: (place) => conditionsOf.deletedRecords({ records: [{ memoryRecordId: 'm', namespace: place }] }),
};

const place = fc.array(fc.constantFrom('a', 'b', 'ab', ''), { maxLength: 4 }).map((parts) => `/${parts.join('/')}`);
const slashes = fc.nat(3).map((count) => '/'.repeat(count));
const operator = fc
  .tuple(
    fc.constantFrom('', 'ForAnyValue:', 'ForAllValues:'),
    fc.constantFrom('StringEquals', 'StringNotEquals', 'StringLike', 'StringNotLike', 'StringEqualsIgnoreCase'),
    fc.constantFrom('', 'IfExists'),
  )
  .map((parts) => parts.join(''));
const pattern = fc.tuple(place, slashes, fc.constantFrom('', '*', '/*', '?', 'b*')).map((parts) => parts.join(''));
const condition = fc
  .tuple(operator, fc.array(pattern, { minLength: 1, maxLength: 2 }))
  .map(
    ([name, wanted]): Record<string, Record<string, string[]>> => ({ [name]: { [NAMESPACE]: wanted, [PATH]: wanted } }),
  );
/** On the one key that the way names: a statement that asks for both matches nothing. */
const statements = fc.array(
  fc.record({ Effect: fc.constantFrom('Allow', 'Deny'), Condition: condition }).map(({ Effect, Condition }) => [
    ...[NAMESPACE, PATH].map((key) => ({
      Effect,
      Condition: Object.fromEntries(Object.entries(Condition).map(([name, keys]) => [name, { [key]: keys[key] }])),
    })),
  ]),
  { minLength: 1, maxLength: 3 },
);

describe('the name of a place', () => {
  it('is one to policies, however many slashes end it, wherever a request says it', () => {
    fc.assert(
      fc.property(
        statements,
        place,
        slashes,
        slashes,
        fc.constantFrom(...Object.keys(ways)),
        (all, name, one, two, way) => {
          const policy = [{ Effect: 'Allow' }, ...all.flat()];
          const say = ways[way] ?? (() => []);
          expect(namespaceKey(name + one)).toBe(namespaceKey(name + two));
          expect(verdicts(policy, say(name + one))).toEqual(verdicts(policy, say(name + two)));
          expect(verdicts(all.flat(), say(name + one))).toEqual(verdicts(all.flat(), say(name + two)));
        },
      ),
      { seed: 12, numRuns: 2_000 },
    );
  });

  it('is allowed where the very text of the request was, and denied where that was', () => {
    fc.assert(
      fc.property(fc.constantFrom('Allow', 'Deny'), place, slashes, (Effect, name, end) => {
        const text = name + end;
        for (const operator of ['StringEquals', 'StringLike', 'ForAllValues:StringEquals'])
          for (const [key, way] of [
            [NAMESPACE, 'namespace'],
            [PATH, 'namespacePath'],
          ] as const)
            expect(verdicts([{ Effect, Condition: { [operator]: { [key]: text } } }], ways[way]?.(text) ?? [])).toEqual(
              [Effect],
            );
      }),
      { seed: 12 },
    );
  });

  it('is no other place’s: not the sibling’s that begins alike, not the one above, not one with a slash inside', () => {
    const deny = [{ Effect: 'Allow' }, { Condition: { StringEquals: { [NAMESPACE]: '/users/bob/' } } }];
    const said = (namespace: string) => verdicts(deny, conditionsOf.namespace({ namespace }));
    for (const name of ['/users/bob', '/users/bob/', '/users/bob//', '/users/bob///'])
      expect(said(name), name).toEqual(['Deny']);
    for (const name of ['/users/bobby', '/users', '/users/bob/x', '/users//bob', 'users/bob', '/Users/bob'])
      expect(said(name), name).toEqual(['Allow']);
  });
});

it('a Deny on a place that is to hold whatever a request says also forbids what names none', () => {
  const bob = { StringEquals: { [NAMESPACE]: '/users/bob' } };
  const said = (sets: Sets, ...more: object[]) => verdicts([{ Effect: 'Allow' }, { Condition: bob }, ...more], sets);
  const byId = conditionsOf.namespace({});
  const above = conditionsOf.namespace({ namespacePath: '/users' });
  expect([said(byId), said(above)]).toEqual([['Allow'], ['Allow']]);
  const silent = { Condition: { Null: { [NAMESPACE]: 'true' } } };
  expect([said(byId, silent), said(above, silent)]).toEqual([['Deny'], ['Deny']]);
  expect(said(conditionsOf.namespace({ namespace: '/users/ann' }), silent)).toEqual(['Allow']);
});

describe('what is written in an actor’s name', () => {
  it('asks for the actor without the slashes too, whose place in a namespace it would share', () => {
    const condition = { StringEquals: { 'bedrock-agentcore:actorId': 'bob' } };
    const said = (actorId: string, ...all: object[]) =>
      verdicts(all, conditionsOf.written({ actorId, sessionId: 's' }, []));
    expect(said('bob/', { Effect: 'Allow' }, { Condition: condition })).toEqual(['Allow', 'Deny']);
    expect(said('bob', { Effect: 'Allow' }, { Condition: condition })).toEqual(['Deny']);
    expect(said('bob/', { Effect: 'Allow', Condition: condition })).toEqual(['None', 'Allow']);
    expect(said('ann', { Effect: 'Allow' }, { Condition: condition })).toEqual(['Allow']);
  });
});
