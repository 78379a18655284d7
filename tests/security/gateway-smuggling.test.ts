import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import {
  CreateApiKeyCredentialProviderCommand,
  CreateGatewayCommand,
  CreateGatewayTargetCommand,
  type CreateGatewayTargetCommandInput,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Backend,
  startBackend,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { settledTarget } from '../support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** What is read in one way by the gateway and in another by the server behind it gets past the gateway's rules. Every request here is written by hand. */
const KEY = 'plum-canary-51c07e2b';
let platform: TestPlatform;
let clients: Clients;
let backend: Backend;
/** Path of the target below the platform, and the host that is asked. */
let target: string;
let host: string;
const seen: { request: IncomingMessage; body: string }[] = [];
/** What the server answers, byte by byte, in the place of its usual answer. */
let answered: string | undefined;
/** Its connection is then open for the next request. */
let stays: boolean;

beforeAll(async () => {
  backend = await startBackend(async (request, response) => {
    seen.push({ request, body: String(await buffer(request)) });
    if (answered === undefined) response.end('tea');
    else if (stays) request.socket.write(answered);
    else request.socket.end(answered);
  });
  platform = await startTestPlatform({
    args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'],
  });
  clients = clientsOf(platform);
  ({ host } = new URL(platform.ready.endpoint));
  const { gatewayId = '' } = await clients.control.send(
    new CreateGatewayCommand({ name: 'open', roleArn: platform.ready.defaultRoleArn, authorizerType: 'NONE' }),
  );
  target = await behind(gatewayId);
});
beforeEach(() => {
  seen.length = 0;
  answered = undefined;
  stays = false;
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await backend?.close();
});

/** The path of a target with a key, and with one header more than its protocol has. */
async function behind(gatewayIdentifier: string): Promise<string> {
  const { credentialProviderArn: providerArn = '' } = await clients.control.send(
    new CreateApiKeyCredentialProviderCommand({ name: 'plum', apiKey: KEY }),
  );
  const apiKeyCredentialProvider = { providerArn, credentialParameterName: 'X-Api-Key' };
  const input: CreateGatewayTargetCommandInput = {
    ...{ gatewayIdentifier, name: 'api' },
    targetConfiguration: {
      http: { passthrough: { endpoint: `${new URL(backend.url).origin}/base`, protocolType: 'CUSTOM' } },
    },
    metadataConfiguration: { allowedRequestHeaders: ['X-Mine'], allowedResponseHeaders: ['X-Quota'] },
    credentialProviderConfigurations: [
      { credentialProviderType: 'API_KEY', credentialProvider: { apiKeyCredentialProvider } },
    ],
  };
  const { targetId = '' } = await clients.control.send(new CreateGatewayTargetCommand(input));
  expect((await settledTarget(clients, gatewayIdentifier, targetId)).status).toBe('READY');
  return `/gateways/${gatewayIdentifier}/api`;
}

/** Sends these bytes, and resolves with the status of each answer and all that came. */
async function raw(bytes: string): Promise<{ statuses: string[]; all: string }> {
  const { hostname, port } = new URL(platform.ready.endpoint);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.write(bytes);
  const all = await text(socket);
  return { statuses: [...all.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status = '']) => status), all };
}

interface Written {
  line?: string;
  /** Beside the host and the end of the connection. */
  headers?: string[];
  body?: string;
}
const written = ({ line = `POST ${target}/a HTTP/1.1`, headers = [], body = '' }: Written): string =>
  [line, `host: ${host}`, 'connection: close', ...headers, '', body].join('\r\n');
const ask = (request: Written) => raw(written(request));

/** Ends a body of four bytes or of one chunk, and goes on with what one of the two readings takes for a second request. */
const second = () => `0\r\n\r\nGET ${target}/smuggled HTTP/1.1\r\nhost: ${host}\r\n\r\n`;

describe('a body has one length', () => {
  it.each([
    ['a length', ['content-length: 3'], 'abc'],
    ['chunks', ['transfer-encoding: chunked'], '3\r\nabc\r\n0\r\n\r\n'],
    ['a length that is said to be of the connection', ['connection: content-length', 'content-length: 3'], 'abc'],
  ])('%s: it arrives whole', async (_, headers, body) => {
    expect((await ask({ headers, body })).statuses).toEqual(['200']);
    expect(seen.map((one) => one.body)).toEqual(['abc']);
  });

  it.each([
    ['a length and chunks', ['content-length: 4', 'transfer-encoding: chunked']],
    ['chunks and a length', ['transfer-encoding: chunked', 'content-length: 4']],
    ['two lengths', ['content-length: 5', 'content-length: 4']],
    ['a list of lengths', ['content-length: 5, 4']],
    ['a length with a sign', ['content-length: +4']],
    ['a length in another base', ['content-length: 0x4']],
    ['a coding that nobody knows', ['transfer-encoding: xchunked']],
    ['chunks that are not the last coding', ['transfer-encoding: chunked, identity']],
    ['a name with a blank behind it', ['transfer-encoding : chunked']],
    ['a name with a tab before it', ['\ttransfer-encoding: chunked']],
  ])('%s: it goes nowhere', async (_, headers) => {
    const { statuses } = await ask({ headers, body: second() });
    expect(statuses).toEqual(['400']);
    expect(seen).toEqual([]);
  });
});

describe('a header is one line', () => {
  it('arrives where the target’s list names it', async () => {
    expect((await ask({ headers: ['x-mine: a b'] })).statuses).toEqual(['200']);
    expect(seen[0]?.request.headers['x-mine']).toBe('a b');
  });

  it('one host said twice is one host', async () => {
    expect((await ask({ headers: [`Host: ${host}`] })).statuses).toEqual(['200']);
  });

  it.each([
    ['a folded one', 'x-mine: a\r\n x-api-key: b'],
    ['one with a bare line feed', 'x-mine: a\nx-api-key: b'],
    ['one with a bare carriage return', 'x-mine: a\rx-api-key: b'],
    ['one with a zero byte', 'x-mine: a\0b'],
    ['one without a colon', 'x-mine'],
    ['a second host', 'host: other.example'],
  ])('%s goes nowhere', async (_, header) => {
    expect((await ask({ headers: [header] })).statuses).toEqual(['400']);
    expect(seen).toEqual([]);
  });
});

describe('headers of a connection stay with it', () => {
  const sent = ['x-mine: a', 'user-agent: pot', 'content-type: text/x-tea'];

  it('those that are not named go on', async () => {
    await ask({ headers: sent });
    expect(seen[0]?.request.headers).toMatchObject({
      'x-mine': 'a',
      'user-agent': 'pot',
      'content-type': 'text/x-tea',
    });
  });

  it('those that Connection names do not, by whatever list they would', async () => {
    expect(
      (await ask({ headers: ['connection: X-Mine , user-agent', 'connection: content-type', ...sent] })).statuses,
    ).toEqual(['200']);
    for (const name of ['x-mine', 'user-agent', 'content-type'])
      expect(seen[0]?.request.headers, name).not.toHaveProperty(name);
  });

  it('the credential and the host of the target do, whatever a client says of them', async () => {
    await ask({ headers: ['connection: x-api-key, host', 'x-api-key: mine', 'x-forwarded-host: other.example'] });
    expect(seen[0]?.request.headers).toMatchObject({ 'x-api-key': KEY, host: new URL(backend.url).host });
    expect(seen[0]?.request.headers).not.toHaveProperty('x-forwarded-host');
  });

  it.each([
    'te: trailers',
    'trailer: x-mine',
    'keep-alive: timeout=9',
    'proxy-authorization: Basic YQ==',
    'upgrade: h2c',
    'content_length: 9',
  ])('%s does not go on', async (header) => {
    expect((await ask({ headers: [header] })).statuses).toEqual(['200']);
    expect(seen[0]?.request.headers).not.toHaveProperty(header.split(':')[0] ?? '');
  });

  it('those of the answer do not come back', async () => {
    const answer = (more: string) => `HTTP/1.1 200 OK\r\nx-quota: 7\r\n${more}content-length: 3\r\n\r\ntea`;
    answered = answer('');
    expect((await ask({})).all).toMatch(/^x-quota: 7/im);
    answered = answer('connection: x-quota\r\n');
    expect((await ask({})).all).not.toMatch(/^x-quota/im);
  });
});

describe('a path is read in one way', () => {
  it.each(['/a', '/a%20b', '/a%252fb', '/a;b=c', '?a=%2f'])('%s arrives as it is written', async (path) => {
    expect((await ask({ line: `GET ${target}${path} HTTP/1.1` })).statuses).toEqual(['200']);
    expect(seen[0]?.request.url).toBe(`/base${path}`);
  });

  it.each([
    '/a%2fb',
    '/a%2F..%2fb',
    '/a%5cb',
    '/%2e%2e/b',
    '/../b',
    '/a//b',
    '/a%0d%0ax-api-key:%20b',
    '/a%00',
    '/a\\b',
    '?a=\t',
    '/a#b',
  ])('%s goes nowhere', async (path) => {
    const { statuses } = await ask({ line: `GET ${target}${path} HTTP/1.1` });
    expect(statuses).toEqual(['400']);
    expect(seen).toEqual([]);
  });

  it.each([
    (path: string) => path.replace('/gateways/', '/gateways%2f'),
    (path: string) => path.replace('/api', '%2fapi'),
    (path: string) => path.replace('/api', '/%61pi'),
    (path: string) => path.replace('/gateways', '//gateways'),
    (path: string) => path.replace('/gateways', '/x/../gateways'),
  ])('nobody is found by another way to write the target (%#)', async (other) => {
    const { statuses } = await ask({ line: `GET ${other(target)}/a HTTP/1.1` });
    expect(statuses).toEqual([expect.stringMatching(/^40[04]$/)]);
    expect(seen).toEqual([]);
  });

  it.each([
    ['of another host', () => `GET http://other.example${target}/a HTTP/1.1`],
    ['of the backend', () => `GET ${new URL(backend.url).origin}/base/a HTTP/1.1`],
    ['with a user', () => `GET http://a@${host}${target}/a HTTP/1.1`],
    ['to connect', () => `CONNECT ${new URL(backend.url).host} HTTP/1.1`],
    ['of an older version, without its slash', () => `GET ${target.slice(1)}/a HTTP/1.0`],
    ['with a second line in it', () => `GET ${target}/a HTTP/1.1 HTTP/1.1`],
  ])('a request line %s reaches no target', async (_, line) => {
    const { statuses } = await ask({ line: line() });
    expect(statuses.every((status) => /^40[0-9]$/.test(status))).toBe(true);
    expect(seen).toEqual([]);
  });
});

it('what a server sends behind its answer is nobody else’s', async () => {
  const evil = 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil';
  stays = true;
  answered = `HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntea${evil}`;
  expect((await ask({})).all).not.toContain('evil');
  answered = undefined;
  for (let i = 0; i < 5; i++) expect((await ask({})).all).toMatch(/tea$/m);
  answered = 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n';
  expect((await ask({})).statuses).toEqual(['502']);
});
