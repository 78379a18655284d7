import type { control } from '@agentplatform/contract';
import { expect, it } from 'vitest';
import type { Principal } from '../../../kernel/auth/index.ts';
import type { LiveTarget } from '../targets/target.ts';
import { isLike } from './is-like.ts';
import type { RoutedRequest } from './meets.ts';
import { routeOf } from './routing.ts';
import type { Rule } from './rule.ts';

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
const route = (
  rules: Rule[],
  request: Partial<RoutedRequest & { headers: Record<string, string> }> = {},
  { targets = [], random = () => 0 }: { targets?: LiveTarget[]; random?: () => number } = {},
) => routeOf({ rules, targets }, { word: 'a', principal, headers: {}, ...request }, random)?.targetName;

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

it('nobody is sent anywhere without a rule', () => {
  expect(route([])).toBeUndefined();
});

it('the first rule counts whose conditions are all met', () => {
  const paths = { matchPaths: { anyOf: ['/x/*', '/a/*'] } };
  const others = { matchPrincipals: { anyOf: [{ iamPrincipal: { arn: 'arn:aws:iam::111122223333:user/bob' } }] } };
  const rules = [rule(to('one'), [paths, others], 1), rule(to('two'), [paths], 2), rule(to('rest'), [], 3)];
  expect(route(rules)).toBe('two');
  expect(route(rules, { word: 'ab' })).toBe('rest');
});

it.each([
  ['arn:aws:sts::111122223333:assumed-role/qa/ann', undefined, true],
  ['arn:aws:iam::111122223333:role/qa', undefined, true],
  ['arn:aws:iam::111122223333:role/q?', 'StringLike', true],
  ['arn:aws:iam::*:role/*', 'StringLike', true],
  ['arn:aws:iam::111122223333:role/q*', undefined, false],
  ['arn:aws:iam::111122223333:role/qa2', 'StringLike', false],
  ['arn:aws:iam::111122223333:user/qa', 'StringLike', false],
] as const)('a session of a role is met by %s (%s): %s', (arn, operator, met) => {
  const iamPrincipal = { arn, ...(operator && { operator }) };
  expect(route([rule(to('x'), [{ matchPrincipals: { anyOf: [{ iamPrincipal }] } }])])).toBe(met ? 'x' : undefined);
});

it('who did not sign is no principal', () => {
  const all = { iamPrincipal: { arn: 'arn:aws:iam::*:role/*', operator: 'StringLike' as const } };
  const rules = [rule(to('x'), [{ matchPrincipals: { anyOf: [all] } }])];
  const anonymous: Principal = { kind: 'anonymous', accountId: '1', acceptedBy: GATEWAY, address: '::1' };
  expect(route(rules, { principal: anonymous })).toBeUndefined();
  expect(route(rules)).toBe('x');
});

it.each([
  ['anthropic.claude-*', undefined, 'anthropic.claude-3', true],
  ['anthropic.claude-*', 'StringEquals', 'anthropic.claude-3', false],
  ['gpt-5', undefined, 'gpt-5', true],
  ['gpt-5', undefined, 'gpt-50', false],
  ['gpt-*', undefined, undefined, false],
] as const)('the model %s (%s) is met by %s: %s', (value, operator, model, met) => {
  const entry = { value, ...(operator && { operator }) };
  expect(route([rule(to('x'), [{ matchModels: { anyOf: [entry] } }])], { model })).toBe(met ? 'x' : undefined);
});

it('a pattern that begins again and again takes no time', () => {
  expect(isLike(`${'a*'.repeat(500)}b`, 'a'.repeat(2_000))).toBe(false);
  expect(isLike(`${'a*'.repeat(500)}b`, `${'a'.repeat(2_000)}b`)).toBe(true);
});

it('a weighted rule splits 10,000 calls by its weights', () => {
  const random = seeded(20_261_123);
  let news = 0;
  for (let i = 0; i < 10_000; i++) if (route([rule(split(30))], {}, { random }) === 'b') news++;
  // Three deviations of what chance gives: 46 of 10,000.
  expect(Math.abs(news - 3_000)).toBeLessThan(138);
});

it('and 10,000 sessions, each of which stays where it is', () => {
  const at = (session: string) =>
    route([rule(split(30))], { headers: { 'mcp-session-id': session } }, { random: () => Number.NaN });
  let news = 0;
  for (let i = 0; i < 10_000; i++) {
    const first = at(`session-${i}`);
    if (first === 'b') news++;
    if (i < 100) expect(Array.from({ length: 5 }, () => at(`session-${i}`))).toEqual(Array(5).fill(first));
  }
  expect(Math.abs(news - 3_000)).toBeLessThan(138);
});

it('a target says where its sessions are, all parts of them', () => {
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
  expect(at({ 'x-session': '1' })).toBe('b');
  const sessions = Array.from({ length: 20 }, (_, i) => at({ 'x-session': '1', 'x-tenant': String(i) }));
  expect(new Set(sessions)).toEqual(new Set(['a', 'b']));
  expect(Array.from({ length: 20 }, (_, i) => at({ 'x-session': '1', 'x-tenant': String(i) }))).toEqual(sessions);
});
