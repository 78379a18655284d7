import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { errors } from '@agentplatform/contract';
import pino from 'pino';
import { beforeEach, expect, it, vi } from 'vitest';
import type { Principal } from '../../../kernel/auth/index.ts';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import type { Passing } from '../../../kernel/http/index.ts';
import type { Outbound } from '../../../kernel/outbound/index.ts';
import { NO_SPAN } from '../../../kernel/telemetry/index.ts';
import { openGateway } from '../gateway-tools.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { AnswerCache, type Budgets } from '../guard-rails/index.ts';
import type { TargetCredentials } from '../outbound/target-credentials.ts';
import type { RateLimit } from '../rate-limits/rate-limit.ts';
import { CircuitBreaker, FallbackChain, Routing, type Rule } from '../rules/index.ts';
import { noSessions } from '../rules/testing/no-sessions.ts';
import type { LiveTarget, TargetDefinition } from '../targets/target.ts';
import { TrafficRequest } from '../traffic/index.ts';
import { InferenceRequests } from './inference-requests.ts';
import type { ProviderOutboundDeps } from './provider-outbound.ts';

const ARN = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:gateway/one-0123456789';
const principal: Principal = {
  ...{ kind: 'iam', accountId: '111122223333', arn: 'arn:aws:iam::111122223333:user/ann', accessKeyId: 'A', tags: {} },
};
const clock = new FakeClock();
const of = vi.fn<TargetCredentials['of']>();
const fetch = vi.fn<Outbound['fetch']>();
let rules: Rule[];
let limits: RateLimit[];

beforeEach(() => {
  vi.resetAllMocks();
  hold.mockResolvedValue({ end: () => undefined, used: () => undefined });
  kept.length = 0;
  rules = [];
  limits = [];
});

/** A target that has these models. */
function target(name: string, ...models: string[]): LiveTarget {
  const operations = [{ path: '/v1/chat/completions', models: models.map((model) => ({ model })) }];
  const modelMapping = { providerPrefix: { strip: true } };
  const provider = { endpoint: 'https://models.example.com', operations, modelMapping };
  const live = {
    targetConfiguration: { inference: { provider } },
    credentialProviderConfigurations: [],
  } as unknown as TargetDefinition;
  return { name, live, arn: `${ARN}/target/${name}` } as LiveTarget;
}

const kept: string[] = [];
const sticky = { ...noSessions, keep: async (_: unknown, name: string) => void kept.push(name) };
const hold = vi.fn<Budgets['hold']>();

const requests = new InferenceRequests({
  ...{
    clock,
    region: 'us-east-1',
    log: pino({ level: 'silent' }),
    credentials: { of },
    onUse: () => undefined,
    budgets: { hold } satisfies Pick<Budgets, 'hold'>,
    cache: new AnswerCache(clock),
  },
  chain: new FallbackChain({ clock, breaker: new CircuitBreaker(clock) }),
  routing: new Routing({ sticky, random: () => 0.5 }),
  outbound: { apart: () => ({ fetch }) } as unknown as ProviderOutboundDeps['outbound'],
  guard: { run: (_target, work) => work(() => undefined) },
});

/** The same for all requests, as those of a gateway that is known. */
const targets = [target('first', 'vendor.small', 'gpt-*'), target('second', 'large')];

/** What a chat asks for at a gateway with two targets. */
function asked(body: object | string, headers: Record<string, string> = {}): TrafficRequest {
  const gateway = { arn: ARN, id: 'one-0123456789' } as Gateway;
  const path = '/v1/chat/completions';
  const passing = {
    ...{ req: { method: 'POST', headers: {} } as IncomingMessage, requestId: 'r', principal, span: NO_SPAN },
    ...{ signal: new AbortController().signal, hold: () => undefined },
    body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  } as unknown as Passing;
  return new TrafficRequest({
    ...{ open: openGateway(gateway, targets, new Map(), { rules, limits }), passing, word: 'inference', path },
    caller: { principal, requestId: 'r', headers, query: new URLSearchParams() },
  });
}

/** A model that answers everything. */
function answers(): void {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }];
  fetch.mockImplementation(async (url) => ({
    ...{ status: 200, headers: { 'content-type': 'application/json' }, url: String(url) },
    body: Readable.from([Buffer.from(JSON.stringify({ choices, usage: { prompt_tokens: 1, completion_tokens: 1 } }))]),
    ...({} as Pick<Awaited<ReturnType<Outbound['fetch']>>, 'bytes' | 'text' | 'json'>),
  }));
}

const rule = (conditions: Rule['conditions'], staticRoute: { targetName: string; model?: string }): Rule => ({
  ...{ gatewayArn: ARN, id: 'r', priority: 1, createdAt: 0, updatedAt: 0, conditions },
  actions: [{ routeToTarget: { staticRoute } }],
});

it('a request is for the target that has its model', async () => {
  expect(await requests.aim(asked({ model: 'large' }))).toMatchObject({ targetName: 'second' });
  expect(await requests.aim(asked({ model: 'first/gpt-x' }))).toMatchObject({ targetName: 'first' });
});

it('a request is for the target of its rule, which another model does not meet', async () => {
  rules = [rule([{ matchModels: { anyOf: [{ value: 'gpt-*' }] } }], { targetName: 'second', model: 'large' })];
  expect(await requests.aim(asked({ model: 'gpt-x' }))).toMatchObject({ targetName: 'second' });
  expect(await requests.aim(asked({ model: 'small' }))).toMatchObject({ targetName: 'first' });
});

it.each([
  ['no target has', []],
  ['the target of its rule has not', [rule([], { targetName: 'second' })]],
])('a request for a model that %s counts for what is in its body', async (_, ruled) => {
  rules = ruled;
  const body = { model: 'none', tenant: 'a' };
  const request = asked(body);
  expect(await requests.aim(request)).toMatchObject({ body });
  expect(await requests.handle(request, () => undefined)).toMatchObject({ status: 404 });
  expect(of).not.toHaveBeenCalled();
});

it('a request is of one model by whatever name clients have for it', async () => {
  const names = ['small', 'vendor.small', 'first/small', 'first/vendor.small'];
  const aimed = await Promise.all(names.map((model) => requests.aim(asked({ model }))));
  expect(new Set(aimed.map(({ qualifiedModelId }) => qualifiedModelId))).toEqual(new Set(['first/vendor.small']));
});

it('its tokens are looked for where a limit counts them, and nowhere else', async () => {
  const said = { model: 'large', max_tokens: 50, messages: [{ role: 'user', content: 'x'.repeat(35) }] };
  expect(await requests.aim(asked(said))).not.toHaveProperty('tokens');
  const tokens = [{ rate: 1, period: 'minute' as const }];
  const entries = [{ dimensions: { targetName: '*' }, tokens }];
  limits = [{ gatewayArn: ARN, id: 'few', dimensionKeys: ['targetName'], entries, createdAt: 0, updatedAt: 0 }];
  // The letters of the name and of the role count as well.
  expect(await requests.aim(asked(said))).toMatchObject({ tokens: 50 + 10 + 2 + 2 });
});

it('what is no request for a model counts for its caller alone', async () => {
  const request = asked('{');
  expect(await requests.aim(request)).toEqual({});
  expect(await requests.handle(request, () => undefined)).toMatchObject({ status: 400 });
});

it('each caller’s credential goes with his own requests, also to a model that was asked before', async () => {
  answers();
  const seen: unknown[] = [];
  for (const token of ['one', 'two', 'one']) {
    const headers = { authorization: `Bearer ${token}` };
    of.mockResolvedValue({ headers, query: [], secrets: [token] });
    const messages = [{ role: 'user', content: 'Hi' }];
    expect(await requests.handle(asked({ model: 'large', messages }), () => undefined)).toMatchObject({ status: 200 });
    seen.push(fetch.mock.lastCall?.[1]?.headers?.authorization);
  }
  expect(seen).toEqual(['Bearer one', 'Bearer two', 'Bearer one']);
});

it('a session under a weighted rule is kept by a request that goes to its model, and by none that is refused', async () => {
  const trafficSplit = ['old', 'new'].map((name) => ({ name, targetName: 'second', weight: 50, model: 'large' }));
  const weighted = { routeToTarget: { weightedRoute: { trafficSplit } } };
  rules = [{ ...rule([], { targetName: 'second' }), actions: [weighted] }];
  const headers = { 'mcp-session-id': 'one' };
  const said = { model: 'large', messages: [{ role: 'user', content: 'Hi' }] };
  answers();
  of.mockResolvedValue({ headers: {}, query: [], secrets: [] });
  // A limit or a policy refuses it: it is aimed at a target, and goes there no more.
  expect(await requests.aim(asked(said, headers))).toMatchObject({ targetName: 'second' });
  hold.mockRejectedValueOnce(errors.throttled('The budget is used up.'));
  expect(await requests.handle(asked(said, headers), () => undefined)).toMatchObject({ status: 429 });
  for (const one of trafficSplit) one.targetName = 'nowhere';
  expect(await requests.handle(asked(said, headers), () => undefined)).toMatchObject({ status: 404 });
  expect(kept).toEqual([]);
  for (const one of trafficSplit) one.targetName = 'second';
  expect(await requests.handle(asked(said, headers), () => undefined)).toMatchObject({ status: 200 });
  expect(kept).toHaveLength(1);
});
