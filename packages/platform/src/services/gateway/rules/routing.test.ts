import type { control } from '@agentplatform/contract';
import { expect, it } from 'vitest';
import type { Principal } from '../../../kernel/auth/index.ts';
import { isLike } from '../../../kernel/is-like.ts';
import type { LiveTarget } from '../targets/target.ts';
import type { RoutedRequest } from './meets.ts';
import { Routing, type RoutingDeps, type Ruled } from './routing.ts';
import type { Rule } from './rule.ts';
import { noSessions } from './testing/no-sessions.ts';

const GATEWAY = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:gateway/one-0123456789';
const principal: Principal = {
  ...{ kind: 'iam', accountId: '111122223333', accessKeyId: 'A', tags: {} },
  arn: 'arn:aws:sts::111122223333:assumed-role/qa/ann',
};

const rule = (
  routeToTarget: control.RouteToTargetAction,
  conditions: control.Condition[] = [],
  priority = 1,
): Rule => ({
  ...{ gatewayArn: GATEWAY, id: `rule-${priority}`, priority, createdAt: 0, updatedAt: 0, conditions },
  actions: [{ routeToTarget }],
});
const to = (targetName: string): control.RouteToTargetAction => ({ staticRoute: { targetName } });
const split = (weight: number): control.RouteToTargetAction => ({
  weightedRoute: {
    trafficSplit: [
      { name: 'old', targetName: 'a', weight: 100 - weight },
      { name: 'new', targetName: 'b', weight },
    ],
  },
});
type Asked = Partial<RoutedRequest & { headers: Record<string, string> }>;
const ruled = (
  rules: Rule[],
  request: Asked = {},
  { targets = [], random = () => 0, sticky = noSessions }: Partial<RoutingDeps> & { targets?: LiveTarget[] } = {},
): Ruled | undefined =>
  new Routing({ sticky, random }).find({ rules, targets }, { word: 'a', principal, headers: {}, ...request });
const route = async (...asked: Parameters<typeof ruled>): Promise<string | undefined> => {
  const found = ruled(...asked);
  return (found?.route ?? (await found?.choose?.())?.route)?.targetName;
};

/** Numbers that look random and are the same each time (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

it('nobody is sent anywhere without a rule', async () => {
  expect(await route([])).toBeUndefined();
});

it('the first rule counts whose conditions are all met', async () => {
  const paths = { matchPaths: { anyOf: ['/x/*', '/a/*'] } };
  const others = { matchPrincipals: { anyOf: [{ iamPrincipal: { arn: 'arn:aws:iam::111122223333:user/bob' } }] } };
  const rules = [rule(to('one'), [paths, others], 1), rule(to('two'), [paths], 2), rule(to('rest'), [], 3)];
  expect(await route(rules)).toBe('two');
  expect(await route(rules, { word: 'ab' })).toBe('rest');
});

it.each([
  ['arn:aws:sts::111122223333:assumed-role/qa/ann', undefined, true],
  ['arn:aws:iam::111122223333:role/qa', undefined, true],
  ['arn:aws:iam::111122223333:role/q?', 'StringLike', true],
  ['arn:aws:iam::*:role/*', 'StringLike', true],
  ['arn:aws:iam::111122223333:role/q*', undefined, false],
  ['arn:aws:iam::111122223333:role/qa2', 'StringLike', false],
  ['arn:aws:iam::111122223333:user/qa', 'StringLike', false],
] as const)('a session of a role is met by %s (%s): %s', async (arn, operator, met) => {
  const iamPrincipal = { arn, ...(operator && { operator }) };
  expect(await route([rule(to('x'), [{ matchPrincipals: { anyOf: [{ iamPrincipal }] } }])])).toBe(
    met ? 'x' : undefined,
  );
});

it('who did not sign is no principal', async () => {
  const all = { iamPrincipal: { arn: 'arn:aws:iam::*:role/*', operator: 'StringLike' as const } };
  const rules = [rule(to('x'), [{ matchPrincipals: { anyOf: [all] } }])];
  const anonymous: Principal = { kind: 'anonymous', accountId: '1', acceptedBy: GATEWAY, address: '::1' };
  expect(await route(rules, { principal: anonymous })).toBeUndefined();
  expect(await route(rules)).toBe('x');
});

it.each([
  ['anthropic.claude-*', undefined, 'anthropic.claude-3', true],
  ['anthropic.claude-*', 'StringEquals', 'anthropic.claude-3', false],
  ['gpt-5', undefined, 'gpt-5', true],
  ['gpt-5', undefined, 'gpt-50', false],
  ['gpt-*', undefined, undefined, false],
] as const)('the model %s (%s) is met by %s: %s', async (value, operator, model, met) => {
  const entry = { value, ...(operator && { operator }) };
  expect(await route([rule(to('x'), [{ matchModels: { anyOf: [entry] } }])], { model })).toBe(met ? 'x' : undefined);
});

it('a pattern that begins again and again takes no time', async () => {
  expect(isLike(`${'a*'.repeat(500)}b`, 'a'.repeat(2_000))).toBe(false);
  expect(isLike(`${'a*'.repeat(500)}b`, `${'a'.repeat(2_000)}b`)).toBe(true);
});

it('a weighted rule splits 10,000 calls by its weights', async () => {
  const random = seeded(20_261_123);
  let news = 0;
  for (let i = 0; i < 10_000; i++) if ((await route([rule(split(30))], {}, { random })) === 'b') news++;
  // Three deviations of what chance gives: 46 of 10,000.
  expect(Math.abs(news - 3_000)).toBeLessThan(138);
});

it('and 10,000 sessions, each of which stays where it is', async () => {
  const at = (session: string) =>
    route([rule(split(30))], { headers: { 'mcp-session-id': session } }, { random: () => Number.NaN });
  let news = 0;
  for (let i = 0; i < 10_000; i++) {
    const first = await at(`session-${i}`);
    if (first === 'b') news++;
    if (i < 100)
      expect(await Promise.all(Array.from({ length: 5 }, () => at(`session-${i}`)))).toEqual(Array(5).fill(first));
  }
  expect(Math.abs(news - 3_000)).toBeLessThan(138);
});

it('a target says where its sessions are, all parts of them', async () => {
  const stickinessConfiguration = {
    identifier: '$context.header.x-session',
    compositeIdentifier: ['$context.header.x-tenant'],
  };
  // What is looked at.
  const target = { name: 'a', live: { targetConfiguration: { http: { passthrough: { stickinessConfiguration } } } } };
  const targets = [target as unknown as LiveTarget];
  const at = (headers: Record<string, string>) =>
    route([rule(split(50))], { headers }, { targets, random: () => 0.99 });
  // Without its tenant it is no session, and drawn.
  expect(await at({ 'x-session': '1' })).toBe('b');
  const tenants = () =>
    Promise.all(Array.from({ length: 20 }, (_, i) => at({ 'x-session': '1', 'x-tenant': String(i) })));
  const sessions = await tenants();
  expect(new Set(sessions)).toEqual(new Set(['a', 'b']));
  expect(await tenants()).toEqual(sessions);
});

it('a session that an answer begins stays where it began, whatever its hash says', async () => {
  const begun: [string, string][] = [];
  const sticky = {
    ...noSessions,
    begin: async ({ key }: { key: string }, name: string) => void begun.push([key, name]),
  };
  for (let i = 0; i < 20; i++) {
    const choose = ruled([rule(split(50))], {}, { random: () => 0.99, sticky })?.choose;
    const chosen = await choose?.();
    expect(chosen?.route.targetName).toBe('b');
    await chosen?.answered?.({ 'mcp-session-id': `s-${i}` });
    await chosen?.answered?.({});
  }
  // Those whose hash says so anyway need nobody to remember it.
  expect(begun.length).toBeGreaterThan(3);
  expect(begun.length).toBeLessThan(17);
  expect(new Set(begun.map(([, name]) => name))).toEqual(new Set(['new']));
  const known = await ruled([rule(split(50))], { headers: { 'mcp-session-id': 's' } })?.choose?.();
  expect(known).not.toHaveProperty('answered');
});
