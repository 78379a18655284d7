import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { errors, ServiceError } from '@agentplatform/contract';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { IamPrincipal } from '../../../kernel/auth/principal.ts';
import { createAuthenticator } from '../../../kernel/auth/sigv4.ts';
import { formatTimestamp } from '../../../kernel/auth/sigv4-claim.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { nameOf } from '../../../kernel/http/audit-record.ts';
import { ToldChanges } from '../../../kernel/storage/testing/told-changes.ts';
import { RuntimeCatalogue } from '../catalogue.ts';
import { StreamGateway, type StreamGatewayDeps, type StreamRecord } from './gateway.ts';

const principal: IamPrincipal = {
  kind: 'iam',
  accountId: '123456789012',
  arn: 'arn:aws:iam::123456789012:user/mate',
  accessKeyId: 'AKIAMATE',
  tags: {},
};
const allowed: string[] = [];
const records: StreamRecord[] = [];
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

function serve(over: Partial<StreamGatewayDeps> = {}): void {
  const deps: Partial<StreamGatewayDeps> = {
    authenticator: createAuthenticator({
      keys: { find: (id) => (id === 'AKIAMATE' ? { secretAccessKey: 'never told', principal } : undefined) },
      clock: systemClock,
      region: 'us-east-1',
    }),
    count: (caller) => void counted.push(nameOf(caller)),
    authorize: ({ resource }) => void allowed.push(resource),
    toError: (error) => (error instanceof ServiceError ? error : undefined),
    record: (stream) => void records.push(stream),
    newRequestId: () => 'r',
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
    ...over,
  };
  server.on('upgrade', new StreamGateway(deps as StreamGatewayDeps).upgrade);
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
  expect(records.map((record) => record.principal)).toEqual([undefined, undefined, undefined]);
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
    count: () => {
      throw errors.throttling('too many');
    },
  });
  expect(await open()).toBe(429);
  expect(allowed).toHaveLength(2);
});
