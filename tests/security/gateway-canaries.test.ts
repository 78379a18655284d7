import { randomBytes } from 'node:crypto';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import {
  CreateApiKeyCredentialProviderCommand,
  CreateGatewayCommand,
  type CreateGatewayCommandInput,
  GetGatewayCommand,
  GetGatewayTargetCommand,
  ListGatewayTargetsCommand,
  type McpTargetConfiguration,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { instancePlaces } from '../../packages/platform/src/kernel/sandbox/host/instance.ts';
import { OtlpReceiver } from '../../packages/platform/src/kernel/telemetry/testing/otlp-receiver.ts';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { Canaries } from '../support/canaries.ts';
import { selfSigned } from '../support/certificates.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider } from '../support/consent-platform.ts';
import { postMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

/** What is no secret: it has to be found wherever secrets are looked for. */
const MARK = `mark-${randomBytes(8).toString('hex')}`;
/** The ways in which a backend repeats what it was sent. */
const ECHOES = ['json', 'text', 'base64', 'error', 'header', 'redirect', 'cut'] as const;

const canaries = new Canaries();
let receiver: OtlpReceiver;
let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;
let folder: string;
const servers: Server[] = [];
/** What came to the backends, whole. */
const shown: string[] = [];
/** What anybody was answered. */
const answers: string[] = [];

/** Everything of a request that may hold a secret. */
async function told(req: IncomingMessage): Promise<string> {
  const all = JSON.stringify({ url: req.url, headers: req.headers, body: await text(req) });
  shown.push(all);
  return all;
}

/** An API that repeats what it is sent, as the path says, and an MCP server that does at `/mcp`. */
const listener: RequestListener = async (req, res) => {
  const all = await told(req);
  if (req.url?.startsWith('/mcp')) return void res.writeHead(200, JSON_TYPE).end(mcpAnswer(JSON.parse(all), all));
  const answer: Record<string, () => void> = {
    json: () => void res.writeHead(200, JSON_TYPE).end(JSON.stringify({ all, [all]: [all] })),
    text: () => void res.writeHead(200, { 'content-type': 'text/plain' }).end(all),
    base64: () => void res.writeHead(200, { 'content-type': 'text/plain' }).end(Buffer.from(all).toString('base64')),
    error: () => void res.writeHead(500, { 'content-type': 'text/plain' }).end(all),
    header: () => void res.writeHead(200, { 'x-echo': all, 'content-type': 'text/plain' }).end('see the header'),
    redirect: () => void res.writeHead(302, { location: `/elsewhere?all=${encodeURIComponent(all)}` }).end(),
    cut: () => {
      res.writeHead(200, { ...JSON_TYPE, 'content-length': String(all.length + 100) });
      res.write(all, () => res.destroy());
    },
  };
  answer[/^\/echo\/(\w+)/.exec(req.url ?? '')?.[1] ?? '']?.();
};
const JSON_TYPE = { 'content-type': 'application/json' };

/** Of a server of the older versions; a tool `error` fails with what it was sent, any other answers it. */
function mcpAnswer({ body }: { body: string }, all: string): string {
  const { id, method, params } = JSON.parse(body) as { id?: number; method: string; params?: Record<string, unknown> };
  const named = { tools: {} };
  const results: Record<string, object> = {
    initialize: {
      ...{ protocolVersion: params?.protocolVersion, capabilities: named },
      serverInfo: { name: 's', version: '1' },
    },
    'tools/list': { tools: ECHOES.map((name) => ({ name, inputSchema: { type: 'object' } })) },
    'tools/call': { content: [{ type: 'text', text: all }], structuredContent: { all, [all]: 1 } },
  };
  const fails = method === 'tools/call' && params?.name === 'error';
  const result = fails ? undefined : results[method];
  const error = { code: fails ? -32050 : -32601, message: fails ? all : 'Method not found', data: { all } };
  return JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) });
}

async function listen(server: Server): Promise<string> {
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const start = (dataDir?: string) =>
  startTestPlatform({
    args: [
      ...['--log-level', 'debug', '--allow-private-egress', '127.0.0.0/8'],
      ...['--gateway-role-credentials', join(folder, 'roles')],
    ],
    env: { AGENTPLATFORM_TELEMETRY_OTLP_ENDPOINT: receiver.url },
    ...(dataDir === undefined ? {} : { dataDir }),
  });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gateway-canaries-'));
  receiver = await OtlpReceiver.start();
  platform = await start();
  clients = clientsOf(platform);
  provider = await connectConsentProvider(clients, 'orders', {
    grantType: 'TOKEN_EXCHANGE',
    tokenExchangeGrantTypeConfig: { actorTokenContent: 'NONE' },
  });
  canaries.add('client secret', provider.clientSecret);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  await receiver?.close();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  await rm(folder, { recursive: true });
});

/** What the wire answers to a request of an owner, kept. */
async function owner(path: string, content: object): Promise<{ status: number; body: Record<string, string> }> {
  const answer = await signedFetch(platform, { method: 'POST', path, content, headers: { 'user-agent': MARK } });
  const answered = await answer.text();
  answers.push(answered);
  return { status: answer.status, body: JSON.parse(answered) };
}

async function gateway(name: string, more: Partial<CreateGatewayCommandInput>): Promise<{ id: string; url: string }> {
  const { gatewayId = '', gatewayUrl = '' } = await clients.control.send(
    new CreateGatewayCommand({
      ...{ name, description: MARK, roleArn: platform.ready.defaultRoleArn, authorizerType: 'AWS_IAM' },
      ...{ exceptionLevel: 'DEBUG', ...more },
    }),
  );
  return { id: gatewayId, url: gatewayUrl };
}

const api = (url: string): McpTargetConfiguration => ({
  openApiSchema: {
    inlinePayload: JSON.stringify({
      openapi: '3.0.3',
      info: { title: 'Echoes', version: '1' },
      servers: [{ url }],
      paths: Object.fromEntries(
        ECHOES.map((how) => [`/echo/${how}`, { get: { operationId: how, responses: { 200: { description: 'ok' } } } }]),
      ),
    }),
  },
});

/** Adds a target, whose status is answered. */
async function add(gatewayId: string, name: string, mcp: McpTargetConfiguration, more: object): Promise<string> {
  const content = {
    ...{ name, description: MARK, targetConfiguration: { mcp } },
    metadataConfiguration: { allowedResponseHeaders: ['x-echo'] },
    ...more,
  };
  const { body } = await owner(`/gateways/${gatewayId}/targets/`, content);
  if (body.targetId === undefined) return body.message ?? '';
  const target = await settledTarget(clients, gatewayId, body.targetId);
  answers.push(JSON.stringify(target));
  return target.status ?? '';
}

const by = (credentialProviderType: string, credentialProvider?: object): object => ({
  credentialProviderConfigurations: [{ credentialProviderType, ...(credentialProvider && { credentialProvider }) }],
});

async function apiKey(name: string): Promise<{ providerArn: string }> {
  const command = new CreateApiKeyCredentialProviderCommand({
    name: name.replaceAll(' ', '-'),
    apiKey: canaries.plant(name),
  });
  return { providerArn: (await clients.control.send(command)).credentialProviderArn ?? '' };
}

async function secret(name: string, value: string): Promise<string> {
  await signedFetch(platform, { method: 'PUT', path: `/_platform/secrets/${name}`, content: { value } });
  const answer = await signedFetch(platform, { method: 'GET', path: `/_platform/secrets/${name}` });
  return ((await answer.json()) as { arn: string }).arn;
}

/** Calls each echo of each target, and asks for the lists; the answers are kept with their headers. */
async function callAll(url: string, targets: readonly string[], as: object): Promise<number> {
  const post = async (method: string, params: object): Promise<void> => {
    const { json, headers } = await postMcp(
      url,
      { jsonrpc: '2.0', id: 1, method, params },
      { 'user-agent': MARK, ...as },
    );
    answers.push(JSON.stringify({ json, headers: Object.fromEntries(headers) }));
  };
  const before = answers.length;
  await post('tools/list', {});
  for (const target of targets)
    for (const how of ECHOES) await post('tools/call', { name: `${target}___${how}`, arguments: {} });
  return answers.length - before;
}

/** Targets that have each kind of credential, in front of backends that repeat what they are sent. */
async function useAll(): Promise<void> {
  const host = await listen(createHttpServer({ maxHeaderSize: 65_536 }, listener));
  const authority = await selfSigned('subjectAltName=IP:127.0.0.1');
  const httpsHost = await listen(createHttpsServer(authority, listener));
  // A file of a key and its certificate, as servers have it: of that the platform needs the certificate alone.
  canaries.add('private key beside a certificate', authority.key.split('\n')[12] ?? '');
  const bundle = await secret('BUNDLE', `${authority.key}\n${authority.cert}`);
  const none = await secret('NO_CERTIFICATE', canaries.plant('secret that is no certificate'));
  const keys = `aws_access_key_id=AKIAOFTHEROLE\naws_secret_access_key=${canaries.plant('secret key of the role')}\naws_session_token=${canaries.plant('session token of the role')}\nhosts=${host}\n`;
  await writeFile(join(folder, 'roles'), `[${platform.ready.defaultRoleArn}]\n${keys}`);

  const signed = await gateway('signed', {});
  const [header, query, dead, mcp, tls] = [
    await apiKey('key in a header'),
    await apiKey('key in a query'),
    await apiKey('key for a dead server'),
    await apiKey('key of an MCP server'),
    await apiKey('key over TLS'),
  ];
  const place = (where: object, more: object = {}): object =>
    by('API_KEY', { apiKeyCredentialProvider: { ...where, ...more } });
  const inQuery = { credentialLocation: 'QUERY_PARAMETER', credentialParameterName: 'key' };
  const oauth = { providerArn: '', scopes: ['read'] };
  const { credentialProviderArn = '' } = await providerOf('orders');
  oauth.providerArn = credentialProviderArn;
  const certificates = (secretArn: string): object => ({
    certificateConfigurations: [{ secretsManager: { secretArn } }],
  });
  const added = {
    header: await add(signed.id, 'header', api(`http://${host}`), place(header, { credentialPrefix: 'Bearer' })),
    query: await add(signed.id, 'query', api(`http://${host}`), place(query, inQuery)),
    dead: await add(signed.id, 'dead', api('http://127.0.0.1:1'), place(dead, inQuery)),
    machine: await add(signed.id, 'machine', api(`http://${host}`), by('OAUTH', { oauthCredentialProvider: oauth })),
    role: await add(
      ...([signed.id, 'role', api(`http://${host}`)] as const),
      by('GATEWAY_IAM_ROLE', { iamCredentialProvider: { service: 'echo' } }),
    ),
    server: await add(signed.id, 'server', { mcpServer: { endpoint: `http://${host}/mcp` } }, place(mcp)),
    certified: await add(signed.id, 'certified', api(`https://${httpsHost}`), {
      ...place(tls),
      ...certificates(bundle),
    }),
  };
  expect(new Set(Object.values(added))).toEqual(new Set(['READY']));
  expect(await add(signed.id, 'none', api(`https://${httpsHost}`), certificates(none))).toContain('no certificate');
  // Where no member takes it.
  const unknown = { ...header, apiKey: canaries.plant('member that there is not') };
  await add(signed.id, 'unknown', api(`http://${host}`), place(unknown));

  // Its tokens are its own, so they are looked for from where they are seen first.
  provider.instead((_request, response) =>
    response.writeHead(200, JSON_TYPE).end(
      JSON.stringify({
        access_token: canaries.plant('token of the gateway'),
        token_type: 'Bearer',
        expires_in: 3600,
      }),
    ),
  );
  await callAll(signed.url, Object.keys(added), { fetch: signingFetch(platform) });
  provider.instead(undefined);

  const byToken = await gateway('by-token', {
    authorizerType: 'CUSTOM_JWT',
    authorizerConfiguration: {
      customJWTAuthorizer: { discoveryUrl: provider.discoveryUrl, allowedAudience: ['agents'] },
    },
  });
  const exchange = { ...oauth, grantType: 'TOKEN_EXCHANGE' };
  const forUsers = {
    passed: await add(byToken.id, 'passed', api(`http://${host}`), by('JWT_PASSTHROUGH')),
    exchanged: await add(
      ...([byToken.id, 'exchanged', api(`http://${host}`)] as const),
      by('OAUTH', { oauthCredentialProvider: exchange }),
    ),
  };
  expect(new Set(Object.values(forUsers))).toEqual(new Set(['READY']));
  const token = await provider.userToken('ada');
  canaries.add('token of a user', token);
  const before = shown.length;
  await callAll(byToken.url, Object.keys(forUsers), { authorization: `Bearer ${token}` });
  for (const one of shown.slice(before)) {
    const [, bearer = ''] = /"authorization":"Bearer ([^"]+)"/.exec(one) ?? [];
    if (bearer !== token) canaries.add('exchanged token', bearer);
  }
  for (const { id } of [signed, byToken]) {
    answers.push(JSON.stringify(await clients.control.send(new GetGatewayCommand({ gatewayIdentifier: id }))));
    const { items = [] } = await clients.control.send(new ListGatewayTargetsCommand({ gatewayIdentifier: id }));
    for (const { targetId = '' } of items)
      answers.push(
        JSON.stringify(await clients.control.send(new GetGatewayTargetCommand({ gatewayIdentifier: id, targetId }))),
      );
  }
}

async function providerOf(name: string): Promise<{ credentialProviderArn?: string }> {
  const { body } = await owner('/identities/GetOauth2CredentialProvider', { name });
  return body;
}

it('the credentials of targets are in no answer, log, trace or file, whatever their backends repeat', async () => {
  await useAll();
  // The controls: the backends were shown each credential and did repeat it, and answers were read.
  const went = new Set(canaries.inText(shown.join('\n')));
  for (const field of [
    ...['key in a header', 'key in a query', 'key of an MCP server', 'key over TLS', 'token of the gateway'],
    ...['session token of the role', 'token of a user', 'exchanged token'],
  ])
    expect(went, field).toContain(field);
  expect(answers.filter((answer) => answer.includes('[masked]')).length).toBeGreaterThan(40);
  expect(answers.join('\n')).toContain(MARK);
  for (const answer of answers) expect(canaries.inText(answer), answer.slice(0, 2_000)).toEqual([]);

  await expect.poll(() => receiver.spans.length, { timeout: 30_000 }).toBeGreaterThan(0);
  const dataDir = await realpath(platform.dataDir);
  const places = [dataDir, instancePlaces(dataDir, '/run/agentplatform').run];
  const look = async (log: string): Promise<void> => {
    expect(canaries.inText(log)).toEqual([]);
    expect(canaries.inText(Buffer.concat(receiver.bytes).toString('latin1'))).toEqual([]);
    expect(canaries.inText(await (await fetch(`${platform.ready.endpoint}/metrics`)).text())).toEqual([]);
    expect(await canaries.inFiles(places)).toEqual([]);
    expect(await canaries.inProcesses('cmdline')).toEqual([]);
    expect(await canaries.inProcesses('environ')).toEqual([]);
  };
  await look(platform.log());
  const marks = new Canaries();
  marks.add('mark', MARK);
  const marked = (await marks.inFiles([dataDir])).map(({ where }) => where);
  for (const part of ['db', 'journal'])
    expect(
      marked.some((file) => file.startsWith(join(dataDir, part))),
      part,
    ).toBe(true);
  expect(platform.log()).toContain('CreateGatewayTarget');
  expect(receiver.spans.map(({ name }) => name).join()).toContain('Gateway');
  // As a crash leaves it, with whatever had not reached the database, and as the next server finds it.
  const log = platform.log();
  await platform.end('SIGKILL');
  expect(await canaries.inFiles([dataDir])).toEqual([]);
  clients.close();
  platform = await start(dataDir);
  clients = clientsOf(platform);
  await look(`${log}${platform.log()}`);
});
