import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { errors } from '@agentplatform/contract';
import { beforeEach, expect, it, vi } from 'vitest';
import type { JwtAuthenticator, Principal } from '../../../kernel/auth/index.ts';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { type Passing, PushBody } from '../../../kernel/http/index.ts';
import { NO_SPAN } from '../../../kernel/telemetry/index.ts';
import { openGateway } from '../gateway-tools.ts';
import type { Gateway, GatewayDefinition } from '../gateways/gateway.ts';
import { Inbound } from '../gateways/inbound.ts';
import { noPolicies } from '../policy/testing/no-policies.ts';
import type { LimitedRequests } from '../rate-limits/index.ts';
import type { RateLimit } from '../rate-limits/rate-limit.ts';
import { CircuitBreaker, FallbackChain, Routing, type Rule } from '../rules/index.ts';
import { noSessions } from '../rules/testing/no-sessions.ts';
import type { LiveTarget, TargetDefinition } from '../targets/target.ts';
import type { TargetKind } from '../targets/target-kind.ts';
import { type TrafficHandler, TrafficRequests } from './traffic-requests.ts';

const ACCOUNT = '111122223333';
const ID = 'one-0123456789';
const ARN = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:gateway/${ID}`;
const signer: Principal = {
  ...{ kind: 'iam', accountId: ACCOUNT, arn: `arn:aws:iam::${ACCOUNT}:user/ann`, accessKeyId: 'A', tags: {} },
};

const pass = vi.fn<NonNullable<TargetKind['pass']>>();
const handle = vi.fn<TrafficHandler['handle']>();
const admit = vi.fn<LimitedRequests['admit']>();
const end = vi.fn();
const used = vi.fn();
let definition: GatewayDefinition;
let limits: RateLimit[];
let rules: Rule[];
const clock = new FakeClock();

beforeEach(() => {
  vi.resetAllMocks();
  definition = { roleArn: 'arn', authorizerType: 'AWS_IAM' };
  limits = [];
  rules = [];
  admit.mockResolvedValue({ end, used });
  for (const answers of [pass, handle])
    answers.mockImplementation(async () => ({ status: 200, headers: {}, body: PushBody.of('done') }));
});

/** A target of that kind, as far as it is looked at. */
function target(name: string, targetConfiguration: object): LiveTarget {
  const live = { targetConfiguration, credentialProviderConfigurations: [] } as unknown as TargetDefinition;
  return { name, live, arn: `${ARN}/target/${name}` } as LiveTarget;
}

async function send(url: string, { method = 'POST', headers = {}, body, principal = signer }: Partial<Asked> = {}) {
  const gateway: Gateway = {
    ...{ arn: ARN, accountId: ACCOUNT, id: ID, name: 'one', createdAt: 0, updatedAt: 0, definition },
  };
  const targets = [target('api', { http: { passthrough: {} } }), target('tools', { mcp: { lambda: {} } })];
  const kind = { type: 'HTTP_PASSTHROUGH' } as unknown as TargetKind;
  const requests = new TrafficRequests({
    inbound: new Inbound({
      identity: { requireWorkload: async () => undefined },
      ...{
        tools: {
          find: async (arn) => (arn === ARN ? openGateway(gateway, targets, new Map(), { limits, rules }) : undefined),
        },
      },
      ...{ region: 'us-east-1', accountId: ACCOUNT, originOf: () => 'http://here', publicUrl: undefined },
      jwt: {} as unknown as JwtAuthenticator,
    }),
    limited: { admit },
    kinds: { lambda: kind, 'http.passthrough': { ...kind, pass } },
    words: { inference: { handle } },
    chain: new FallbackChain({ clock, breaker: new CircuitBreaker(clock) }),
    gate: noPolicies(),
    routing: new Routing({ sticky: noSessions, random: () => 0.5 }),
  });
  const req = { url, method, headers, rawHeaders: [], socket: {} } as unknown as IncomingMessage;
  const signal = new AbortController().signal;
  const passing = {
    req,
    requestId: 'r',
    principal,
    body,
    signal,
    span: NO_SPAN,
    hold: () => undefined,
  } as unknown as Passing;
  return requests.read(req).pass(passing);
}

interface Asked {
  method: string;
  headers: Record<string, string>;
  body: Uint8Array | Readable;
  principal: Principal;
}

it.each(['GET', 'POST', 'DELETE'])('%s goes to the target of its first word, as it was written', async (method) => {
  await send(`/gateways/${ID}/api/a%20b/c;d?x=%2F&y`, { method });
  const [request, to] = pass.mock.calls[0] ?? [];
  expect(request).toMatchObject({ word: 'api', path: '/a%20b/c;d', passing: { req: { method } } });
  expect(request?.caller.query.get('x')).toBe('/');
  expect(to?.name).toBe('api');
});

it.each([
  ['/api', ''],
  ['/api/', '/'],
  ['/api?a', ''],
])('what follows the word %s is %j', async (url, path) => {
  await send(`/gateways/${ID}${url}`);
  expect(pass.mock.calls[0]?.[0].path).toBe(path);
});

it('a word has a handler before a target of that name', async () => {
  await send(`/gateways/${ID}/inference/v1/models`);
  expect(handle.mock.calls[0]?.[0]).toMatchObject({ word: 'inference', path: '/v1/models' });
  expect(pass).not.toHaveBeenCalled();
});

it.each(['/tools/a', '/none/a', '/constructor/a', '/', '/%61pi/a'])('nobody answers at %s', async (path) => {
  await expect(send(`/gateways/${ID}${path}`)).rejects.toMatchObject({ status: 404 });
  expect(admit).not.toHaveBeenCalled();
});

it('another gateway is not there', async () => {
  await expect(send('/gateways/two-0123456789/api/a')).rejects.toMatchObject({ status: 404 });
});

it('a path that a backend may read otherwise goes nowhere', async () => {
  await expect(send(`/gateways/${ID}/api/a/%2e%2e/b`)).rejects.toMatchObject({ status: 400 });
  expect(pass).not.toHaveBeenCalled();
  await send(`/gateways/${ID}/api/a/b`);
  expect(pass).toHaveBeenCalledOnce();
});

it('a signature opens no gateway that takes none', async () => {
  definition = { roleArn: 'arn', authorizerType: 'NONE' };
  await expect(send(`/gateways/${ID}/api/a`)).rejects.toMatchObject({ status: 403 });
  const principal: Principal = { kind: 'anonymous', accountId: ACCOUNT, acceptedBy: ARN, address: '::1' };
  await send(`/gateways/${ID}/api/a`, { principal });
  expect(pass).toHaveBeenCalledOnce();
});

it('interceptors are not passed by', async () => {
  const lambda = { arn: `arn:aws:lambda:us-east-1:${ACCOUNT}:function:guard` };
  definition.interceptorConfigurations = [{ interceptor: { lambda }, interceptionPoints: ['REQUEST'] }];
  await expect(send(`/gateways/${ID}/api/a`)).rejects.toMatchObject({ status: 400 });
  expect(pass).not.toHaveBeenCalled();
});

it('is counted for its target before that is asked, until its answer has ended', async () => {
  const { readable: stream, writable } = new TransformStream<Uint8Array, Uint8Array>();
  pass.mockResolvedValue({ status: 200, headers: {}, body: PushBody.from(stream) });
  const { body } = await send(`/gateways/${ID}/api/a`);
  expect(admit.mock.calls[0]?.[1]).toEqual([expect.objectContaining({ principal: signer, targetName: 'api' })]);
  expect(end).not.toHaveBeenCalled();
  await writable.close();
  await vi.waitUntil(() => body.settled);
  expect(end).toHaveBeenCalledOnce();
});

it('what is refused by a limit reaches no target, and what fails counts no longer', async () => {
  pass.mockRejectedValueOnce(errors.unavailable('away'));
  await expect(send(`/gateways/${ID}/api/a`)).rejects.toMatchObject({ status: 503 });
  expect(end).toHaveBeenCalledOnce();
  pass.mockClear();
  admit.mockRejectedValue(errors.throttling('too many'));
  await expect(send(`/gateways/${ID}/api/a`)).rejects.toMatchObject({ status: 429 });
  expect(pass).not.toHaveBeenCalled();
});

const BY_TENANT: RateLimit = {
  ...{ gatewayArn: ARN, id: 'tenants', createdAt: 0, updatedAt: 0, entries: [] },
  dimensionKeys: ['$.context.iam.principal', '$.context.request.body.tenant'],
};

it.each([
  { kind: 'JSON', type: 'application/json', looked: { tenant: 'a' } },
  { kind: 'JSON of a kind', type: 'application/vnd.api+json; charset=utf-8', looked: { tenant: 'a' } },
  { kind: 'text', type: 'text/plain', looked: undefined },
])('a limit sees what is in a body of $kind, which still goes on', async ({ type, looked }) => {
  limits = [BY_TENANT];
  const text = '{"tenant":"a"}';
  const headers = { 'content-type': type, 'content-length': String(text.length) };
  await send(`/gateways/${ID}/api/a`, { headers, body: Readable.from([Buffer.from(text)]) });
  expect(admit.mock.calls[0]?.[1][0]?.body).toEqual(looked);
  const sent = pass.mock.calls[0]?.[0].body;
  const parts = sent instanceof Uint8Array ? [sent] : await sent?.toArray();
  expect(Buffer.concat(parts ?? []).toString()).toBe(text);
});

it.each([
  { named: 'no limit looks into it', limited: false, length: '14' },
  { named: 'it is long', limited: true, length: '100000000' },
])('a body is not read where $named', async ({ limited, length }) => {
  limits = limited ? [BY_TENANT] : [];
  const body = Readable.from([Buffer.from('{"tenant":"a"}')]);
  await send(`/gateways/${ID}/api/a`, {
    headers: { 'content-type': 'application/json', 'content-length': length },
    body,
  });
  expect(pass.mock.calls[0]?.[0].body).toBe(body);
  expect(body.readableDidRead).toBe(false);
});

const ruled = (conditions: Rule['conditions'], staticRoute: { targetName: string }): Rule => ({
  ...{ gatewayArn: ARN, id: 'r', priority: 1, createdAt: 0, updatedAt: 0, conditions },
  actions: [{ routeToTarget: { staticRoute } }],
});

it('a rule sends a request to another target, and it counts for what was asked', async () => {
  rules = [ruled([{ matchPaths: { anyOf: ['/canary/*'] } }], { targetName: 'api' })];
  await send(`/gateways/${ID}/canary/a`);
  expect(pass.mock.calls[0]?.[1].name).toBe('api');
  expect(admit.mock.calls[0]?.[1][0]?.targetName).toBe('canary');
  rules = [ruled([], { targetName: 'tools' })];
  await expect(send(`/gateways/${ID}/api/a`)).rejects.toMatchObject({ status: 404 });
});
