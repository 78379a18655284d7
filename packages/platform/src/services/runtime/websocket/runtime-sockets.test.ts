import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { errors } from '@agentplatform/contract';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createAuthenticator, formatTimestamp, type IamPrincipal } from '../../../kernel/auth/index.ts';
import { systemClock } from '../../../kernel/clock.ts';
import {
  type AuditRecord,
  nameOf,
  type SocketOpening,
  SocketPipeline,
  type SocketPipelineDeps,
} from '../../../kernel/http/index.ts';
import { bodies } from '../../../kernel/http/testing/bodies.ts';
import { PEER_HEADER } from '../../../kernel/peers/index.ts';
import { ToldChanges } from '../../../kernel/storage/testing/told-changes.ts';
import { RuntimeCatalogue } from '../catalogue.ts';
import { RuntimeSockets, type RuntimeSocketsDeps } from './runtime-sockets.ts';

const principal: IamPrincipal = {
  kind: 'iam',
  accountId: '123456789012',
  arn: 'arn:aws:iam::123456789012:user/mate',
  accessKeyId: 'AKIAMATE',
  tags: {},
};
const allowed: string[] = [];
const records: AuditRecord[] = [];
const counted: string[] = [];
const server = createServer();

beforeEach(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  server.removeAllListeners('upgrade').close();
  await once(server, 'close');
  allowed.length = 0;
  records.length = 0;
  counted.length = 0;
});

function serve(over: Partial<SocketPipelineDeps> = {}): void {
  const sockets: Partial<RuntimeSocketsDeps> = {
    catalogue: new RuntimeCatalogue({
      store: { load: async () => undefined },
      callbackUrl: async () => undefined,
      changes: new ToldChanges(),
      topics: [],
      runtimeOf: () => '',
      onChange: () => undefined,
    }),
    clock: systemClock,
    region: 'us-east-1',
    log: pino({ enabled: false }),
  };
  const pipeline = new SocketPipeline({
    services: [new RuntimeSockets(sockets as RuntimeSocketsDeps)],
    authenticator: createAuthenticator({
      keys: { find: (id) => (id === 'AKIAMATE' ? { secretAccessKey: 'never told', principal } : undefined) },
      clock: systemClock,
      region: 'us-east-1',
    }),
    bodies,
    rates: { take: (caller) => void counted.push(nameOf(caller)), refused: () => undefined },
    authorize: ({ resource }) => void allowed.push(resource),
    audit: (record) => void records.push(record),
    needRecord: () => undefined,
    clock: systemClock,
    newRequestId: () => 'r',
    log: pino({ enabled: false }),
    ...over,
  });
  server.on('upgrade', pipeline.upgrade);
}

/** The status of the answer to a request to open a WebSocket whose signature is made up. */
async function open(
  headers: Record<string, string> = {},
  path = '/runtimes/agent-0123456789/ws',
): Promise<number | undefined> {
  const now = formatTimestamp(systemClock.now());
  const scope = `${now.slice(0, 8)}/us-east-1/bedrock-agentcore/aws4_request`;
  const sent = request({
    port: (server.address() as AddressInfo).port,
    path,
    headers: {
      connection: 'upgrade',
      upgrade: 'websocket',
      'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
      'sec-websocket-version': '13',
      'x-amz-date': now,
      authorization: `AWS4-HMAC-SHA256 Credential=AKIAMATE/${scope}, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`,
      ...headers,
    },
  });
  sent.end();
  const [answer] = await once(sent, 'response');
  answer.resume();
  return answer.statusCode;
}

it('opens for no made-up signature, also not beside a body that the signature would have to cover', async () => {
  serve();
  expect(await open()).toBe(403);
  expect(await open({ 'content-length': '1' })).toBe(400);
  expect(await open({ 'transfer-encoding': 'chunked' })).toBe(400);
  expect([...allowed, ...counted]).toEqual([]);
  expect(records.map(({ principal, status }) => [principal, status])).toEqual([
    [undefined, 403],
    [undefined, 400],
    [undefined, 400],
  ]);
});

it('counts an opening once, whatever it has to be allowed for, and before that', async () => {
  serve({ authenticator: { authenticate: () => ({ principal, body: { kind: 'unsigned' } }) } });
  expect(await open({}, '/runtimes/agent-0123456789/ws?qualifier=prod')).toBe(404);
  // The runtime and its endpoint.
  expect(allowed).toHaveLength(2);
  expect(counted).toEqual([principal.arn]);
  server.removeAllListeners('upgrade');
  serve({
    authenticator: { authenticate: () => ({ principal, body: { kind: 'unsigned' } }) },
    bodies,
    rates: {
      take: () => {
        throw errors.throttling('too many');
      },
      refused: () => undefined,
    },
  });
  expect(await open()).toBe(429);
  expect(allowed).toHaveLength(2);
});

it('counts and keeps what another server has handed on where it came to, and nowhere else', async () => {
  const signed = { authenticate: () => ({ principal, body: { kind: 'unsigned' } as const }) };
  const claims = { to: 'a', method: 'GET', url: '/', expires: 0 };
  const forward = {
    upgrade: async () => undefined,
    sent: ({ headers }: IncomingMessage) => (headers[PEER_HEADER] === 'true' ? claims : undefined),
  };
  serve({ authenticator: signed, forward });
  expect(await open({ [PEER_HEADER]: 'made up' })).toBe(404);
  expect([counted.length, records.length]).toEqual([1, 1]);
  expect(await open({ [PEER_HEADER]: 'true' })).toBe(404);
  expect([counted.length, records.length]).toEqual([1, 1]);
  // It is allowed here all the same.
  expect(allowed).toHaveLength(4);
});

it('opens by the version whose authorizer has judged the token, whatever is deployed meanwhile', async () => {
  const arn = 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/agent-0123456789';
  const versions = ['first', 'second'].map((id) => ({
    runtime: { id, arn, accountId: '123456789012' },
    version: { protocol: 'MCP', definition: {} },
    headerAllowlist: [],
  }));
  const judged: string[] = [];
  const deps = {
    catalogue: { peek: () => versions.shift() },
    verifyToken: async (target: { runtime: { id: string } }) => void judged.push(target.runtime.id),
    clock: systemClock,
    region: 'us-east-1',
    log: pino({ enabled: false }),
  };
  const sockets = new RuntimeSockets(deps as unknown as RuntimeSocketsDeps);
  const req = {
    url: `/runtimes/${encodeURIComponent(arn)}/ws`,
    headers: { authorization: 'Bearer x' },
    rawHeaders: [],
  };
  const asked = sockets.read(req as unknown as IncomingMessage);
  await asked?.bearer?.([arn], new AbortController().signal);
  // It names the version that it would open: this one has no WebSocket.
  const opening = { req, principal, resources: [arn], require: async () => undefined } as unknown as SocketOpening;
  await expect(asked?.open(opening)).rejects.toThrow(/^first speaks MCP/);
  expect(judged).toEqual(['first']);
});
