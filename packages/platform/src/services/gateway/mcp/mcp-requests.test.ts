import type { IncomingMessage } from 'node:http';
import type { control, DocumentValue } from '@agentplatform/contract';
import { pino } from 'pino';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { JwtAuthenticator, Principal } from '../../../kernel/auth/index.ts';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import type { Passing, UpstreamResponse } from '../../../kernel/http/index.ts';
import type { Changes } from '../../../kernel/storage/index.ts';
import type { FunctionCaller } from '../../functions/index.ts';
import { openGateway } from '../gateway-tools.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { Inbound } from '../gateways/inbound.ts';
import type { LiveTarget } from '../targets/target.ts';
import { Interceptors } from './interceptors.ts';
import { GatewayRequests } from './mcp-requests.ts';
import { McpServers, type McpServersDeps } from './mcp-servers.ts';
import type { ToolCalls } from './tool-calls.ts';

const ACCOUNT = '111122223333';
const ID = 'one-0123456789';
const ARN = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:gateway/${ID}`;
const INTERCEPTED: control.GatewayInterceptorConfiguration = {
  interceptor: { lambda: { arn: `arn:aws:lambda:us-east-1:${ACCOUNT}:function:guard` } },
  interceptionPoints: ['REQUEST'],
};
const gateway = (interceptorConfigurations: control.GatewayInterceptorConfiguration[] = [], mcp = {}): Gateway => ({
  ...{ arn: ARN, accountId: ACCOUNT, id: ID, name: 'one', createdAt: 0, updatedAt: 0 },
  definition: { roleArn: 'arn', authorizerType: 'AWS_IAM', interceptorConfigurations, protocolConfiguration: { mcp } },
});
const principal: Principal = {
  ...{ kind: 'iam', accountId: ACCOUNT, arn: `arn:aws:iam::${ACCOUNT}:user/mallory`, accessKeyId: 'M', tags: {} },
};
const CALL = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'secret___tool', arguments: {} } };
const BYTE_ORDER_MARK = '\ufeff';

const call = vi.fn<ToolCalls['call']>(async () => ({ content: [{ type: 'text', text: 'done' }] }));
const invoke = vi.fn<FunctionCaller['invoke']>();
const countMore = vi.fn<(messages: number) => void>();
const says = (mcp: DocumentValue): void =>
  void invoke.mockResolvedValue({ outcome: 'returned', value: { interceptorOutputVersion: '1.0', mcp } });

/** The endpoint of that gateway alone. */
function requestsTo(one: Gateway, targets: readonly LiveTarget[] = []): GatewayRequests {
  const log = pino({ level: 'silent' });
  const tools = { find: async () => openGateway(one, targets, new Map()) };
  // What is asked of them here.
  const servers = new McpServers({
    ...{ tools, log, kinds: {}, version: '1', clock: new FakeClock(), onSessionEnd: () => undefined },
    onCall: () => undefined,
    ...{ changes: { subscribe: () => undefined } as unknown as Changes, calls: { call } as unknown as ToolCalls },
    life: { epoch: 1, other: () => undefined },
  } as unknown as McpServersDeps);
  return new GatewayRequests({
    servers,
    inbound: new Inbound({
      ...{ tools, region: 'us-east-1', accountId: ACCOUNT, originOf: () => 'http://here', publicUrl: undefined },
      jwt: {} as unknown as JwtAuthenticator,
      identity: { requireWorkload: async () => undefined },
    }),
    interceptors: new Interceptors({ functions: { invoke }, roleMay: () => true, log }),
    limited: { admit: async () => ({ end: () => undefined, used: () => undefined }) },
  });
}

interface Sent {
  at?: Gateway;
  to?: GatewayRequests;
  method?: string;
  version?: string;
  session?: string;
  text: string;
}

/** Sends the gateway a request of that body. */
async function begin({ at = gateway(), to = requestsTo(at), method = 'POST', version = '2025-06-18', ...sent }: Sent) {
  const headers = {
    ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    ...{ 'mcp-protocol-version': version, 'mcp-session-id': sent.session },
  };
  // What is read of it.
  const req = { url: `/gateways/${ID}/mcp`, method, rawHeaders: [], socket: {}, headers } as unknown as IncomingMessage;
  const passing = { req, requestId: 'request', principal, countMore, signal: new AbortController().signal };
  return to.read(req).pass({ ...passing, body: Buffer.from(sent.text) } as unknown as Passing);
}

async function textOf(body: UpstreamResponse['body']): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts).toString();
}

/** What the gateway answers. */
async function send(sent: Sent) {
  const { body, ...answer } = await begin(sent);
  return { ...answer, text: await textOf(body) };
}

beforeEach(() => {
  for (const one of [call, invoke, countMore]) one.mockClear();
});

describe('a message that only some would read as JSON', () => {
  it.each([
    ['interceptors', gateway([INTERCEPTED]), CALL],
    ['the rules of batches', gateway(), [CALL, CALL, CALL]],
  ])('passes by nothing: %s', async (_, at, message) => {
    says({ transformedGatewayResponse: { statusCode: 403, body: { denied: true } } });
    const json = JSON.stringify(message);
    const plain = await send({ at, text: json });
    expect(plain.status).toBe(Array.isArray(message) ? 400 : 403);
    const hidden = await send({ at, text: BYTE_ORDER_MARK + json });
    expect(hidden.status).toBe(400);
    expect(JSON.parse(hidden.text)).toMatchObject({ id: null, error: { code: -32700 } });
    expect(call).not.toHaveBeenCalled();
  });

  it.each(['', '{', BYTE_ORDER_MARK])('is refused here: %j', async (text) => {
    const { status, text: said } = await send({ text });
    expect([status, JSON.parse(said).error.code]).toEqual([400, -32700]);
  });

  it('counts for each of its messages where it is a batch', async () => {
    const text = JSON.stringify([CALL, { ...CALL, id: 2 }, { ...CALL, id: 3 }]);
    await send({ version: '2025-03-26', text });
    expect(countMore).toHaveBeenCalledWith(2);
    expect(call).toHaveBeenCalledTimes(3);
    const hidden = await send({ version: '2025-03-26', text: BYTE_ORDER_MARK + text });
    expect(hidden.status).toBe(400);
    expect(call).toHaveBeenCalledTimes(3);
  });
});

it('a batch without end is refused before its messages are counted, each of which would be a row of the audit trail', async () => {
  const ping = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' });
  const batch = (count: number): Promise<{ status: number; text: string }> =>
    send({ version: '2025-03-26', text: JSON.stringify(Array.from({ length: count }, (_, id) => ping(id))) });
  expect(await batch(101)).toMatchObject({ status: 400, text: expect.stringContaining('at most 100 messages') });
  expect(countMore).not.toHaveBeenCalled();
  expect((await batch(100)).status).toBe(200);
  expect(countMore).toHaveBeenCalledWith(99);
});

it('a message of hundreds of thousands of values is refused before it is read', async () => {
  const many = (count: number): string =>
    JSON.stringify(CALL).replace('"arguments":{}', `"arguments":{"a":[${'0,'.repeat(count)}0]}`);
  const refused = await send({ text: many(300_000) });
  expect(refused).toMatchObject({ status: 400, text: expect.stringContaining('too many values') });
  expect(call).not.toHaveBeenCalled();
  expect((await send({ text: many(200_000) })).status).toBe(200);
  expect(call).toHaveBeenCalledOnce();
});

it.each([
  ['GET', gateway()],
  ['DELETE', gateway()],
  ['GET', gateway([INTERCEPTED])],
])('the body of a %s is no message', async (method, at) => {
  expect(await send({ at, method, text: '{}' })).toEqual(await send({ at, method, text: '' }));
  expect(invoke).not.toHaveBeenCalled();
});

it('a message that is too deep for an interceptor is refused before it', async () => {
  const nested = (levels: number): string =>
    JSON.stringify(CALL).replace('"arguments":{}', `"arguments":{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`);
  says({ transformedGatewayResponse: { statusCode: 403, body: { denied: true } } });
  expect((await send({ at: gateway([INTERCEPTED]), text: nested(200) })).status).toBe(403);
  invoke.mockClear();
  expect((await send({ at: gateway([INTERCEPTED]), text: nested(100_000) })).status).toBe(400);
  expect(invoke).not.toHaveBeenCalled();
  expect((await send({ text: nested(100_000) })).status).toBe(200);
});

it('a stream of changes begins at once, also where targets may say headers of answers', async () => {
  // What is looked at.
  const target = { live: { metadataConfiguration: { allowedResponseHeaders: ['x-quota'] } } } as unknown as LiveTarget;
  const to = requestsTo(gateway([], { sessionConfiguration: {} }), [target]);
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
  const begun = await send({ to, text: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }) });
  const session = String(begun.headers['mcp-session-id']);
  const { status, body } = await begin({ to, session, method: 'GET', text: '' });
  expect(status).toBe(200);
  await send({ to, session, method: 'DELETE', text: '' });
  // Nothing came meanwhile, such as what keeps a stream alive.
  expect(await textOf(body)).toBe('');
});
