import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../../kernel/clock.ts';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { createOutbound, type Outbound } from '../../../kernel/outbound/index.ts';
import { openGateway } from '../gateway-tools.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { ToolCalls, type ToolCallsDeps } from '../mcp/tool-calls.ts';
import { compileOpenApi } from '../openapi/index.ts';
import { type Credential, NO_CREDENTIAL } from '../outbound/credential.ts';
import { TARGET_LIMITS, TargetGuard } from '../outbound/target-guard.ts';
import { noPolicies } from '../policy/testing/no-policies.ts';
import type { Tool } from '../tools/index.ts';
import { HttpCalls } from './http-calls.ts';
import type { LiveTarget, TargetDefinition } from './target.ts';
import type { ToolCall, ToolCaller } from './target-kind.ts';

const SECRET = 'a-secret-of-the-backend';
let backend: Server;
let url: string;
let listener: RequestListener;
let outbound: Outbound;
let tool: Tool;
let calls: HttpCalls;

beforeAll(async () => {
  backend = createServer((req, res) => listener(req, res));
  await new Promise<void>((done) => backend.listen(0, '127.0.0.1', done));
  url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`;
  const paths = { '/things': { get: { operationId: 'things', responses: { 200: { description: 'ok' } } } } };
  const document = { openapi: '3.0.3', info: { title: 'x', version: '1' }, servers: [{ url }], paths };
  const { tools } = await compileOpenApi({ text: JSON.stringify(document) }, { target: 'x' });
  tool = tools[0] as Tool;
  outbound = createOutbound({ allowPrivate: ['127.0.0.0/8'], clock: systemClock });
});
afterAll(async () => {
  await outbound.close();
  backend.closeAllConnections();
  backend.close();
});
beforeEach(() => {
  const credential: Credential = {
    headers: { authorization: `Bearer ${SECRET}` },
    query: [['api_key', SECRET]],
    secrets: [SECRET],
  };
  calls = new HttpCalls({
    ...{ outbound, guard: new TargetGuard({ clock: systemClock, changes: { subscribe: () => undefined } }) },
    credentials: { of: async () => credential },
  });
});

function call(name = 'one', live: Partial<TargetDefinition> = {}, query = '', passBack?: ToolCaller['passBack']) {
  // What a call reads of them.
  const target = { arn: `arn:${name}`, name, live } as LiveTarget;
  const caller = { headers: { 'x-tenant': 'a' }, query: new URLSearchParams(query), passBack } as unknown as ToolCaller;
  const { signal } = new AbortController();
  return calls.call({ gateway: {} as Gateway, target, tool, arguments: {}, caller, messageId: 1, signal });
}

it('sends the credential and what the lists name, the credential last', async () => {
  let seen: unknown;
  listener = (req, res) => {
    seen = { url: req.url, tenant: req.headers['x-tenant'], authorization: req.headers.authorization };
    res.end();
  };
  const metadataConfiguration = { allowedRequestHeaders: ['X-Tenant'], allowedQueryParameters: ['page', 'api_key'] };
  await call('one', { metadataConfiguration }, 'page=1&page=2&api_key=mine&other=3');
  expect(seen).toEqual({
    url: `/things?page=1&page=2&api_key=${SECRET}`,
    tenant: 'a',
    authorization: `Bearer ${SECRET}`,
  });
});

it('follows no redirect with a credential', async () => {
  const asked: (string | undefined)[] = [];
  listener = (req, res) => {
    asked.push(req.url?.split('?')[0]);
    res.writeHead(302, { location: '/elsewhere' }).end();
  };
  expect(await call()).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('302') }] });
  expect(asked).toEqual(['/things']);
});

it('leaves a backend alone that hangs up each time, and no other', async () => {
  let asked = 0;
  listener = (req) => {
    asked++;
    req.socket.destroy();
  };
  for (let i = 0; i < TARGET_LIMITS.failures; i++) await expect(call('dead')).rejects.toThrow(/failed|closed/);
  await expect(call('dead')).rejects.toThrow('left alone');
  expect(asked).toBe(TARGET_LIMITS.failures);
  listener = (_req, res) => res.end('{}');
  expect((await call('alive')).isError).not.toBe(true);
});

it('waits five minutes for a backend, says so to the model, and leaves alone one that answers none of several calls', async () => {
  const clock = new FakeClock();
  const out = createOutbound({ allowPrivate: ['127.0.0.0/8'], clock });
  const waiting = new HttpCalls({
    ...{ outbound: out, credentials: { of: async () => NO_CREDENTIAL } },
    guard: new TargetGuard({ clock, changes: { subscribe: () => undefined } }),
  });
  let asked = 0;
  listener = () => asked++;
  for (let i = 1; i <= TARGET_LIMITS.failures; i++) {
    const answer = callListed(waiting);
    await expect.poll(() => asked).toBe(i);
    await clock.advance(300_000);
    expect(await answer).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('did not finish its answer within 300000 ms') }],
    });
  }
  expect(await callListed(waiting)).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining('left alone') }],
  });
  expect(asked).toBe(TARGET_LIMITS.failures);
  await out.close();
});

/** As a gateway calls its tool for a client. */
function callListed(by: HttpCalls): Promise<object> {
  const live = { targetConfiguration: { mcp: { openApiSchema: {} } }, credentialProviderConfigurations: [] };
  // What a call reads of them.
  const target = { arn: 'arn:silent', name: 'silent', accountId: 'a', live } as unknown as LiveTarget;
  const gateway = { id: 'g', definition: {} } as Gateway;
  const caller = { requestId: 'r', headers: {}, query: new URLSearchParams() } as unknown as ToolCaller;
  const kind = { call: (one: ToolCall) => by.call(one) };
  const deps = {
    kinds: { openApiSchema: kind },
    asked: { of: () => [] },
    gate: noPolicies(),
    log: pino({ level: 'silent' }),
  };
  const open = openGateway(gateway, [target], new Map([[target.arn, { tools: [tool] }]]));
  const asked = { name: `silent___${tool.name}`, arguments: {}, caller, messageId: 1 };
  return new ToolCalls(deps as unknown as ToolCallsDeps).call(open, { ...asked, signal: new AbortController().signal });
}

it('tells nothing of the credential that a backend repeats', async () => {
  listener = (req, res) => res.writeHead(403).end(`not with ${req.headers.authorization} and ${req.url}`);
  const text = JSON.stringify(await call());
  expect(text).toContain('403');
  expect(text).not.toContain(SECRET);
});

it('passes the headers of the answer back that the list names, without the credential', async () => {
  listener = (_req, res) => res.setHeader('x-quota', '7').setHeader('x-token', `is ${SECRET}`).end('{}');
  const back: object[] = [];
  await call('back', { metadataConfiguration: { allowedResponseHeaders: ['X-Quota', 'x-token'] } }, '', (headers) =>
    back.push(headers),
  );
  expect(back).toEqual([{ 'x-quota': '7', 'x-token': expect.not.stringContaining(SECRET) }]);
});
