import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import {
  BedrockAgentCoreClient,
  CreateEventCommand,
  GetWorkloadAccessTokenCommand,
  ListEventsCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateApiKeyCredentialProviderCommand,
  CreateGatewayCommand,
  type CreateGatewayCommandInput,
  CreateGatewayRuleCommand,
  CreateGatewayTargetCommand,
  type CreateGatewayTargetCommandInput,
  CreateWorkloadIdentityCommand,
  DeleteGatewayRuleCommand,
  GetGatewayRuleCommand,
  ListGatewayRulesCommand,
  ListGatewayTargetsCommand,
  type TargetConfiguration,
  UpdateGatewayCommand,
  UpdateGatewayRuleCommand,
  UpdateGatewayTargetCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { settledTarget, signingFetch } from '../support/gateway.ts';
import { newUser } from '../support/iam.ts';
import { newMemory } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const KEY = 'kiwi-canary-7f3a9c51';
let platform: TestPlatform;
let clients: Clients;
let backend: Server;
let backendUrl: string;
let signed: typeof fetch;
const seen: { request: IncomingMessage; body: Buffer }[] = [];
type Answer = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;
let answer: Answer;
const echo: Answer = (_, response) => void response.setHeader('content-type', 'application/json').end('{"said":"tea"}');

beforeAll(async () => {
  backend = createServer(async (request, response) => {
    if (!request.url?.startsWith('/live')) seen.push({ request, body: await buffer(request) });
    await answer(request, response);
  });
  await new Promise<void>((done) => backend.listen(0, '127.0.0.1', done));
  backendUrl = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`;
  const manyCalls = ['--quotas-requests-per-second', '0'];
  platform = await startTestPlatform({
    args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8', ...manyCalls],
  });
  clients = clientsOf(platform);
  signed = signingFetch(platform);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  backend?.closeAllConnections();
  backend?.close();
});
beforeEach(() => {
  seen.length = 0;
  answer = echo;
});

let named = 0;
async function gateway(more: Partial<CreateGatewayCommandInput> = {}): Promise<{ id: string; url: string }> {
  const roleArn = platform.ready.defaultRoleArn;
  const { gatewayId: id = '' } = await clients.control.send(
    new CreateGatewayCommand({ name: `traffic-${++named}`, roleArn, authorizerType: 'AWS_IAM', ...more }),
  );
  return { id, url: `${platform.ready.endpoint}/gateways/${id}` };
}

async function target(
  gatewayIdentifier: string,
  name: string,
  http: object,
  more: Partial<CreateGatewayTargetCommandInput> = {},
) {
  // The SDK lacks what is newer than it; the platform's own validators look at all of it.
  const targetConfiguration = { http } as TargetConfiguration;
  const input = { gatewayIdentifier, name, targetConfiguration, ...more };
  const { targetId = '' } = await clients.control.send(new CreateGatewayTargetCommand(input));
  const made = await settledTarget(clients, gatewayIdentifier, targetId);
  expect(made).toMatchObject({ status: 'READY', protocolType: 'HTTP' });
}

/** A gateway, open unless said, with that server as its target `api`. */
async function passthrough(
  configuration: object = {},
  more: Partial<CreateGatewayTargetCommandInput> = {},
  authorizer: Partial<CreateGatewayCommandInput> = { authorizerType: 'NONE' },
): Promise<string> {
  const { id, url } = await gateway(authorizer);
  await target(
    id,
    'api',
    { passthrough: { endpoint: `${backendUrl}/base/`, protocolType: 'CUSTOM', ...configuration } },
    more,
  );
  return `${url}/api`;
}

describe('a passthrough target', () => {
  it('is asked as the gateway is: method, path, query and body, and answers as it does', async () => {
    const url = await passthrough();
    answer = (_, response) => void response.writeHead(418, { 'content-type': 'text/plain', etag: '"1"' }).end('short');
    const reply = await fetch(`${url}/pots/a%20b;v=1?x=%2F&y&x=2`, {
      method: 'PATCH',
      headers: { 'content-type': 'text/x-tea', 'x-mine': '1', cookie: 'a=1', 'user-agent': 'pot' },
      body: 'leaves',
    });
    expect(reply.status).toBe(418);
    expect(await reply.text()).toBe('short');
    expect(Object.fromEntries(reply.headers)).toMatchObject({
      ...{ etag: '"1"', 'content-type': 'text/plain', 'cache-control': 'no-store' },
      // It would be a page of the platform's own address.
      'content-security-policy': expect.stringContaining('sandbox'),
    });
    const [{ request, body } = {}] = seen;
    expect(request).toMatchObject({ method: 'PATCH', url: '/base/pots/a%20b;v=1?x=%2F&y&x=2' });
    expect(String(body)).toBe('leaves');
    expect(request?.headers).toMatchObject({
      'content-type': 'text/x-tea',
      'user-agent': 'pot',
      host: backendUrl.slice(7),
    });
    expect(request?.headers).not.toHaveProperty('x-mine');
    expect(request?.headers).not.toHaveProperty('cookie');
  });

  it('is told and tells what its lists name, and nothing else of their kind', async () => {
    const metadataConfiguration = {
      allowedRequestHeaders: ['X-Mine'],
      allowedQueryParameters: ['page'],
      allowedResponseHeaders: ['X-Quota'],
    };
    const url = await passthrough({}, { metadataConfiguration });
    answer = (_, response) =>
      void response.writeHead(200, { 'x-quota': '7', 'x-inner': '1', 'set-cookie': 'a=1' }).end();
    const reply = await fetch(`${url}/a?page=2&debug=1`, { headers: { 'x-mine': '1', 'x-other': '2' } });
    expect(seen[0]?.request.url).toBe('/base/a?page=2');
    expect(seen[0]?.request.headers).toMatchObject({ 'x-mine': '1' });
    expect(seen[0]?.request.headers).not.toHaveProperty('x-other');
    expect(reply.headers.get('x-quota')).toBe('7');
    expect([reply.headers.get('x-inner'), reply.headers.get('set-cookie')]).toEqual([null, null]);
  });

  it.each([
    [undefined, '/base/a?v=2&w=3&k=a%20b'],
    ['CLIENT_OVERRIDE', '/base/a?v=2&w=3&k=a%20b'],
    ['STATIC_OVERRIDE', '/base/a?w=3&k=a%20b&v=1'],
  ])('gets the query parameters of its owner, with %s', async (staticQueryParameterConflictResolution, sent) => {
    const url = await passthrough({
      staticQueryParameters: { v: '1', k: 'a b' },
      ...(staticQueryParameterConflictResolution && { staticQueryParameterConflictResolution }),
    });
    await fetch(`${url}/a?v=2&w=3`);
    expect(seen[0]?.request.url).toBe(sent);
  });

  it('gets the credential of its owner, which no answer shows, wherever it is cut', async () => {
    const { credentialProviderArn: providerArn = '' } = await clients.control.send(
      new CreateApiKeyCredentialProviderCommand({ name: `key-${++named}`, apiKey: KEY }),
    );
    const apiKeyCredentialProvider = { providerArn, credentialParameterName: 'X-Api-Key' };
    const credentialProviderConfigurations: CreateGatewayTargetCommandInput['credentialProviderConfigurations'] = [
      { credentialProviderType: 'API_KEY', credentialProvider: { apiKeyCredentialProvider } },
    ];
    const metadataConfiguration = { allowedResponseHeaders: ['X-Echo'] };
    const url = await passthrough({}, { credentialProviderConfigurations, metadataConfiguration });
    answer = async (_, response) => {
      response.writeHead(200, { 'x-echo': KEY });
      for (const part of ['your key is ', KEY.slice(0, 7), KEY.slice(7, 12), `${KEY.slice(12)}, and kiw`]) {
        response.write(part);
        await new Promise(setImmediate);
      }
      response.end('i');
    };
    const reply = await fetch(`${url}/a`, { headers: { 'x-api-key': 'mine' } });
    expect(seen[0]?.request.headers['x-api-key']).toBe(KEY);
    expect(reply.headers.get('x-echo')).toBe('[masked]');
    expect(await reply.text()).toBe(`your key is ${'*'.repeat(KEY.length)}, and kiwi`);
    answer = (_, response) => void response.writeHead(200, { 'content-encoding': 'x-rot13' }).end('xrl');
    expect((await fetch(`${url}/a`)).status).toBe(502);
  });

  it('streams both ways: what is sent arrives before its end, and each part of the answer when it comes', async () => {
    const url = await passthrough({ endpoint: `${backendUrl}/live` });
    answer = (incoming, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      incoming.on('data', (part) => response.write(`data: ${part}\n\n`)).on('end', () => response.end());
    };
    const call = request(`${url}/chat`, { method: 'POST' });
    call.write('one');
    const [reply] = (await once(call, 'response')) as [IncomingMessage];
    const [first] = await once(reply, 'data');
    expect(String(first)).toBe('data: one\n\n');
    call.write('two');
    const [second] = await once(reply, 'data');
    expect(String(second)).toBe('data: two\n\n');
    call.end();
    await once(reply, 'end');
  });

  it.each(['before', 'in'])('hears that its client has gone, %s its answer', async (when) => {
    const url = await passthrough({ endpoint: `${backendUrl}/live` });
    const gone = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    answer = (incoming, response) => {
      incoming.resume();
      response.on('close', gone.resolve);
      if (when === 'in') response.write('some');
      asked.resolve();
    };
    const ending = new AbortController();
    const call = fetch(`${url}/a`, { signal: ending.signal });
    await asked.promise;
    if (when === 'in') await (await call).body?.getReader().read();
    ending.abort();
    await call.catch(() => undefined);
    await gone.promise;
  });

  it('is left alone for no client that has gone, but is once it is away itself', async () => {
    const url = await passthrough({ endpoint: `${backendUrl}/live` });
    const statusesAfter = async (fail: (ending: AbortController, response: ServerResponse) => void) => {
      for (let i = 0; i < 6; i++) {
        const ending = new AbortController();
        answer = (_, response) => fail(ending, response);
        await fetch(`${url}/a`, { signal: ending.signal }).catch(() => undefined);
      }
      answer = echo;
      return (await fetch(`${url}/a`)).status;
    };
    expect(await statusesAfter((ending) => ending.abort())).toBe(200);
    expect(await statusesAfter((_, response) => void response.destroy())).toBe(503);
  });

  it('is asked once, whatever becomes of it: away, cut or no HTTP', async () => {
    let connections = 0;
    let behave: (socket: import('node:net').Socket) => void = () => undefined;
    const rude = createTcpServer((socket) => {
      connections++;
      socket.on('error', () => undefined);
      behave(socket);
    });
    await new Promise<void>((done) => rude.listen(0, '127.0.0.1', done));
    const { port } = rude.address() as AddressInfo;
    const url = await passthrough({ endpoint: `http://127.0.0.1:${port}` });
    const ask = async () => {
      connections = 0;
      const reply = await fetch(`${url}/a`);
      return { status: reply.status, connections, text: await reply.text().catch(() => 'cut') };
    };
    behave = (socket) => void socket.once('data', () => socket.destroy());
    expect(await ask()).toMatchObject({ status: 502, connections: 1 });
    behave = (socket) => void socket.once('data', () => socket.end('SSH-2.0-nothing\r\n'));
    expect(await ask()).toMatchObject({ status: 502, connections: 1 });
    behave = (socket) =>
      void socket.once('data', () =>
        socket.end('HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf', () => socket.destroy()),
      );
    expect(await ask()).toEqual({ status: 200, connections: 1, text: 'cut' });
    behave = (socket) => void socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfull'));
    expect(await ask()).toEqual({ status: 200, connections: 1, text: 'full' });
    rude.close();
    expect(await ask()).toMatchObject({ status: 502, connections: 0 });
  });

  it('leads nobody elsewhere', async () => {
    const url = await passthrough();
    answer = (_, response) => void response.writeHead(302, { location: 'https://example.com/' }).end();
    expect((await fetch(`${url}/a`, { redirect: 'manual' })).status).toBe(502);
  });

  /** A request line as it is, which no client would send. */
  async function raw(line: string, headers = ''): Promise<string> {
    const { hostname, port, host } = new URL(platform.ready.endpoint);
    const socket = connect(Number(port), hostname);
    socket.write(`${line} HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n${headers}\r\n`);
    return (await text(socket)).split('\r\n')[0] ?? '';
  }

  it('is reached by no other path than its own', async () => {
    const { pathname } = new URL(await passthrough());
    for (const path of ['/../x', '/%2e%2e/x', '/a/..%2fx', '/a//b', '/a%5cb', '/a%0d%0aX:y', '/a%00', '/..;/x', '//x'])
      expect(await raw(`GET ${pathname}${path}`), path).toMatch(/ 400 /);
    expect(seen).toEqual([]);
    expect(await raw(`GET ${pathname}/a`)).toMatch(/ 200 /);
    expect(seen[0]?.request.url).toBe('/base/a');
  });

  it('sees no second request in one, and no header that another names as its connection’s', async () => {
    const { pathname } = new URL(await passthrough());
    const both = 'content-length: 4\r\ntransfer-encoding: chunked\r\n';
    expect(await raw(`POST ${pathname}/a`, `${both}`)).toMatch(/ 400 /);
    expect(seen).toEqual([]);
    expect(await raw(`GET ${pathname}/a`, 'connection: user-agent\r\nuser-agent: x\r\nte: trailers\r\n')).toMatch(
      / 200 /,
    );
    expect(seen[0]?.request.headers).not.toHaveProperty('user-agent');
    expect(seen[0]?.request.headers).not.toHaveProperty('te');
  });

  it.each([
    { why: 'a closed address', configuration: { endpoint: 'https://169.254.169.254/latest' } },
    { why: 'a query', configuration: { endpoint: 'https://example.com/?a=1' } },
    { why: 'a document that nothing reads', configuration: { schema: { source: { inlinePayload: '{}' } } } },
    { why: 'a session in no header', configuration: { stickinessConfiguration: { identifier: '$context.body.id' } } },
  ])('is not made of $why', async ({ configuration }) => {
    await expect(passthrough(configuration)).rejects.toMatchObject({ name: 'ValidationException' });
  });

  it('takes no WebSocket, and says so', async () => {
    const { pathname, host } = new URL(await passthrough());
    const socket = new WebSocket(`ws://${host}${pathname}/live`);
    const [, reply] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage];
    expect([reply.statusCode, await text(reply)]).toEqual([404, expect.stringContaining('do not pass on WebSockets')]);
    expect(seen).toEqual([]);
    // The same address without the wish to upgrade.
    expect((await fetch(`http://${host}${pathname}/live`)).status).toBe(200);
  });

  it('is made on no gateway of MCP alone, and by no name with another meaning', async () => {
    const { id } = await gateway({ protocolType: 'MCP' });
    const passthrough = { endpoint: backendUrl, protocolType: 'CUSTOM' };
    await expect(target(id, 'api', { passthrough })).rejects.toThrow('protocolType');
    const other = await gateway();
    for (const name of ['mcp', 'inference', 'targets', 'rules'])
      await expect(target(other.id, name, { passthrough })).rejects.toThrow('another meaning');
    await target(other.id, 'api', { passthrough });
    const { items = [] } = await clients.control.send(new ListGatewayTargetsCommand({ gatewayIdentifier: other.id }));
    expect(items).toMatchObject([{ name: 'api', targetType: 'PASSTHROUGH' }]);
  });

  it('is behind the gateway’s rights and rates', async () => {
    const url = await passthrough({}, {}, { authorizerType: 'AWS_IAM' });
    expect((await fetch(`${url}/a`)).status).toBe(403);
    const nobody = await newUser(platform, 'nobody-of-traffic', [
      { Effect: 'Allow', Action: 's3:GetObject', Resource: '*' },
    ]);
    expect((await signingFetch(platform, nobody)(`${url}/a`)).status).toBe(403);
    expect(seen).toEqual([]);
    expect((await signed(`${url}/a`)).status).toBe(200);
  });
});

it('the headers of A2A go on to an agent, and come back', async () => {
  const { id, url } = await gateway();
  await target(id, 'agent', { passthrough: { endpoint: backendUrl, protocolType: 'A2A' } });
  answer = ({ headers }, response) =>
    void response.writeHead(200, { 'a2a-extensions': String(headers['a2a-extensions']) }).end();
  const reply = await signed(`${url}/agent/`, { headers: { 'a2a-version': '0.3', 'a2a-extensions': 'urn:x' } });
  expect(reply.headers.get('a2a-extensions')).toBe('urn:x');
  expect(seen.at(-1)?.request.headers).toMatchObject({ 'a2a-version': '0.3' });
});

describe('a runtime behind a gateway', () => {
  it('is invoked in the name of the role or of the caller, in the session that the client says', async () => {
    const { arn } = await deployAgent(platform, clients, {
      folder: join(import.meta.dirname, '../support/probe-agent'),
    });
    const { id, url } = await gateway();
    const agentcoreRuntime = { arn };
    await target(
      id,
      'by-role',
      { agentcoreRuntime },
      { credentialProviderConfigurations: [{ credentialProviderType: 'GATEWAY_IAM_ROLE' }] },
    );
    await target(
      id,
      'by-caller',
      { agentcoreRuntime },
      { credentialProviderConfigurations: [{ credentialProviderType: 'CALLER_IAM_CREDENTIALS' }] },
    );
    const session = `traffic-${'s'.repeat(40)}`;
    const headers = { 'content-type': 'application/json', 'x-amzn-bedrock-agentcore-runtime-session-id': session };
    const ask = (name: string, path = '/invocations', as = signed) =>
      as(`${url}/${name}${path}`, { method: 'POST', headers, body: '{"do":"count"}' });
    for (const name of ['by-role', 'by-caller']) {
      const reply = await ask(name);
      expect({ status: reply.status, text: await reply.text() }).toMatchObject({ status: 200 });
      expect(reply.headers.get('x-amzn-bedrock-agentcore-runtime-session-id')).toBe(session);
    }
    expect((await ask('by-role', '/commands')).status).toBe(404);
    const only = await newUser(platform, 'gateway-only', [
      { Effect: 'Allow', Action: 'bedrock-agentcore:InvokeGateway', Resource: '*' },
    ]);
    const statuses = [];
    for (const name of ['by-role', 'by-caller'])
      statuses.push((await ask(name, '/invocations', signingFetch(platform, only))).status);
    expect(statuses).toEqual([200, 403]);
  });

  it('takes users’ tokens from the gateways that it names alone, and a gateway from the workloads that it names', async () => {
    const provider = await startOidcServer();
    onTestFinished(() => provider.close());
    const rules = { discoveryUrl: provider.discoveryUrl, allowedAudience: ['urn:agents'] };
    const jwt = (more: object) => ({
      ...{ authorizerType: 'CUSTOM_JWT' as const },
      authorizerConfiguration: { customJWTAuthorizer: { ...rules, ...more } },
    });
    const [named_, other] = [await gateway(jwt({})), await gateway(jwt({}))];
    const { accountId, region } = platform.ready;
    const hostingEnvironments = [{ arn: `arn:aws:bedrock-agentcore:${region}:${accountId}:gateway/${named_.id}` }];
    const { arn } = await deployAgent(platform, clients, {
      folder: join(import.meta.dirname, '../support/probe-agent'),
      authorizerConfiguration: jwt({ allowedWorkloadConfiguration: { hostingEnvironments } }).authorizerConfiguration,
    });
    const passing = { credentialProviderConfigurations: [{ credentialProviderType: 'JWT_PASSTHROUGH' as const }] };
    for (const { id } of [named_, other]) await target(id, 'agent', { agentcoreRuntime: { arn } }, passing);
    const authorization = `Bearer ${await provider.token()}`;
    const ask = (url: string, more: object = {}) =>
      fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization, ...more },
        body: '{"do":"headers"}',
      });
    const throughNamed = await ask(`${named_.url}/agent/invocations`);
    const told = await throughNamed.text();
    expect({ status: throughNamed.status, told }).toMatchObject({ status: 200 });
    const own = `${platform.ready.endpoint}/runtimes/${encodeURIComponent(arn)}/invocations`;
    const statuses = [
      await ask(`${other.url}/agent/invocations`),
      await ask(own),
      await ask(own, { workloadaccesstoken: 'x' }),
    ];
    expect(statuses.map(({ status }) => status)).toEqual([403, 403, 403]);

    await clients.control.send(new CreateWorkloadIdentityCommand({ name: 'assistant' }));
    const { workloadAccessToken = '' } = await clients.data.send(
      new GetWorkloadAccessTokenCommand({ workloadName: 'assistant' }),
    );
    const inner = await gateway(jwt({ allowedWorkloadConfiguration: { workloadIdentities: ['assistant'] } }));
    const own_ = { passthrough: { endpoint: `${backendUrl}/base/`, protocolType: 'CUSTOM' } };
    await target(inner.id, 'api', own_);
    expect((await ask(`${inner.url}/api/a`)).status).toBe(403);
    expect((await ask(`${inner.url}/api/a`, { workloadaccesstoken: workloadAccessToken })).status).toBe(200);
    expect(seen.at(-1)?.request.headers.workloadaccesstoken).toBeUndefined();
  });

  it('is not made without credentials, nor of another account', async () => {
    const { id } = await gateway();
    const arn = 'arn:aws:bedrock-agentcore:us-east-1:999999999999:runtime/other-0123456789';
    const credentialProviderConfigurations: CreateGatewayTargetCommandInput['credentialProviderConfigurations'] = [
      { credentialProviderType: 'GATEWAY_IAM_ROLE' },
    ];
    await expect(target(id, 'a', { agentcoreRuntime: { arn } }, { credentialProviderConfigurations })).rejects.toThrow(
      'this account',
    );
  });
});

describe('what targets and rules need stays', () => {
  const passthrough = () => ({ passthrough: { endpoint: backendUrl, protocolType: 'CUSTOM' } });

  it('a gateway with targets of HTTP gets no protocol and no interceptors', async () => {
    const { id: gatewayIdentifier } = await gateway();
    const name = `traffic-${named}`;
    const same = {
      gatewayIdentifier,
      name,
      roleArn: platform.ready.defaultRoleArn,
      authorizerType: 'AWS_IAM' as const,
    };
    const change = (more: object) => clients.control.send(new UpdateGatewayCommand({ ...same, ...more }));
    const arn = `arn:aws:lambda:${platform.ready.region}:${platform.ready.accountId}:function:guard`;
    const changes = {
      protocolType: 'MCP',
      interceptorConfigurations: [{ interceptor: { lambda: { arn } }, interceptionPoints: ['REQUEST'] }],
    };
    for (const [field, value] of Object.entries(changes)) await change({ [field]: value });
    await change({});
    await target(gatewayIdentifier, 'api', passthrough());
    for (const [field, value] of Object.entries(changes))
      await expect(change({ [field]: value }), field).rejects.toMatchObject({
        ...{ name: 'ValidationException', fieldList: [{ name: field }] },
        message: expect.stringMatching(/target of HTTP api.*Change or delete the target first/),
      });
    await change({ description: 'the same' });
  });

  it('a target to which a rule routes becomes none of MCP', async () => {
    const { id: gatewayIdentifier } = await gateway();
    await target(gatewayIdentifier, 'api', passthrough());
    const { items = [] } = await clients.control.send(new ListGatewayTargetsCommand({ gatewayIdentifier }));
    const targetId = items[0]?.targetId;
    const actions = [{ routeToTarget: { staticRoute: { targetName: 'api' } } }];
    const { ruleId } = await clients.control.send(
      new CreateGatewayRuleCommand({ gatewayIdentifier, priority: 1, actions }),
    );
    const mcpServer = { endpoint: `${backendUrl}/mcp`, listingMode: 'DYNAMIC' as const };
    const change = (targetConfiguration: TargetConfiguration) =>
      clients.control.send(
        new UpdateGatewayTargetCommand({ gatewayIdentifier, targetId, name: 'api', targetConfiguration }),
      );
    await expect(change({ mcp: { mcpServer } })).rejects.toMatchObject({
      ...{ name: 'ValidationException', fieldList: [{ name: 'targetConfiguration' }] },
      message: expect.stringMatching(new RegExp(`the rule ${ruleId} sends requests to api.*Change or delete the rule`)),
    });
    await change({ http: passthrough() } as TargetConfiguration);
    await clients.control.send(new DeleteGatewayRuleCommand({ gatewayIdentifier, ruleId }));
    await change({ mcp: { mcpServer } });
  });
});

describe('a memory behind a gateway', () => {
  const asRole = { credentialProviderConfigurations: [{ credentialProviderType: 'GATEWAY_IAM_ROLE' as const }] };
  const of = (memoryId: string) => ({
    connector: { source: { connectorId: 'agentcore-memory' }, parameters: { memoryId } },
  });

  it('is asked by an SDK whose endpoint is the target, in the name of the role, and no other memory', async () => {
    const [{ id: memoryId }, { id: other }] = await Promise.all([newMemory(clients), newMemory(clients)]);
    const { id, url } = await gateway();
    await target(id, 'notes', of(memoryId), asRole);
    const only = await newUser(platform, 'memory-by-gateway', [
      { Effect: 'Allow', Action: 'bedrock-agentcore:InvokeGateway', Resource: '*' },
    ]);
    const { region, endpoint } = platform.ready;
    const sdk = (at: string) => new BedrockAgentCoreClient({ endpoint: at, region, credentials: only, maxAttempts: 1 });
    const [through, direct] = [sdk(`${url}/notes`), sdk(endpoint)];
    const place = { memoryId, actorId: 'jane', sessionId: 's1' };
    const payload = [{ conversational: { role: 'USER' as const, content: { text: 'I live in Oslo.' } } }];
    const event = { ...place, payload, eventTimestamp: new Date(0) };
    await expect(direct.send(new CreateEventCommand(event))).rejects.toMatchObject({ name: 'AccessDeniedException' });
    await through.send(new CreateEventCommand(event));
    expect((await through.send(new ListEventsCommand(place))).events).toMatchObject([{ payload }]);
    await expect(through.send(new ListEventsCommand({ ...place, memoryId: other }))).rejects.toMatchObject({
      ...{ name: 'ResourceNotFoundException', message: expect.stringContaining('operations on its memory') },
    });
    for (const path of [`/memories/${memoryId}/memoryRecords/batchDelete`, '/runtimes/x/invocations'])
      expect((await signed(`${url}/notes${path}`, { method: 'POST', body: '{}' })).status, path).toBe(404);
    for (const client of [through, direct]) client.destroy();
  });

  it('is asked by who brings no signature, where the gateway takes him', async () => {
    const { id: memoryId } = await newMemory(clients);
    const { id, url } = await gateway({ authorizerType: 'NONE' });
    await target(id, 'notes', of(memoryId), asRole);
    const reply = await fetch(`${url}/notes/memories/${memoryId}/actor/jane/sessions/s1`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' },
    });
    expect([reply.status, await reply.json()]).toEqual([200, { events: [] }]);
  });

  it.each([
    ['another connector', { connector: { source: { connectorId: 'x' } } }, asRole],
    ['no memory', { connector: { source: { connectorId: 'agentcore-memory' } } }, asRole],
    ['a parameter more', { connector: { ...of('m').connector, parameters: { memoryId: 'm', actorId: 'a' } } }, asRole],
    ['no credential', of('m'), {}],
  ])('is not made with %s', async (_, http, more) => {
    const { id } = await gateway();
    await expect(target(id, 'a', http, more)).rejects.toMatchObject({ name: 'ValidationException' });
  });
});

describe('rules', () => {
  /** A gateway whose targets `blue` and `green` answer with their names. */
  async function colours() {
    const { id, url } = await gateway();
    for (const colour of ['blue', 'green'])
      await target(id, colour, { passthrough: { endpoint: `${backendUrl}/${colour}`, protocolType: 'CUSTOM' } });
    answer = ({ url: path = '' }, response) => void response.end(path.split('/')[1]);
    const ask = async (word: string, headers = {}) => (await signed(`${url}/${word}/x`, { headers })).text();
    return { gatewayIdentifier: id, ask };
  }
  const to = (targetName: string) => [{ routeToTarget: { staticRoute: { targetName } } }];

  it('are made, shown, changed, listed and deleted, and count at once', async () => {
    const { gatewayIdentifier, ask } = await colours();
    const conditions = [{ matchPaths: { anyOf: ['/blue/*'] } }];
    const rule = { gatewayIdentifier, priority: 10, conditions, actions: to('green'), description: 'a move' };
    expect(await ask('blue')).toBe('blue');
    const made = await clients.control.send(new CreateGatewayRuleCommand(rule));
    expect(made).toMatchObject({
      priority: 10,
      conditions,
      actions: to('green'),
      description: 'a move',
      status: 'ACTIVE',
    });
    const { ruleId = '' } = made;
    expect(await ask('blue')).toBe('green');
    expect(await ask('green')).toBe('green');
    const named = { gatewayIdentifier, ruleId };
    await clients.control.send(new UpdateGatewayRuleCommand({ ...named, priority: 20, actions: to('blue') }));
    const shown = await clients.control.send(new GetGatewayRuleCommand(named));
    expect(shown).toMatchObject({ ruleId, priority: 20, conditions, actions: to('blue'), description: 'a move' });
    expect(await ask('blue')).toBe('blue');
    const second = await clients.control.send(new CreateGatewayRuleCommand({ ...rule, conditions: [] }));
    expect(await ask('blue')).toBe('green');
    const { gatewayRules = [] } = await clients.control.send(new ListGatewayRulesCommand({ gatewayIdentifier }));
    expect(gatewayRules.map((one) => one.ruleId)).toEqual([ruleId, second.ruleId]);
    await clients.control.send(new DeleteGatewayRuleCommand({ gatewayIdentifier, ruleId: second.ruleId ?? '' }));
    await clients.control.send(new DeleteGatewayRuleCommand(named));
    await expect(clients.control.send(new GetGatewayRuleCommand(named))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
    expect(await ask('blue')).toBe('blue');
  });

  it('split traffic, and keep a session where it is', async () => {
    const { gatewayIdentifier, ask } = await colours();
    const trafficSplit = ['blue', 'green'].map((targetName) => ({ targetName, name: targetName, weight: 50 }));
    const actions = [{ routeToTarget: { weightedRoute: { trafficSplit } } }];
    await clients.control.send(new CreateGatewayRuleCommand({ gatewayIdentifier, priority: 1, actions }));
    const sessions = Array.from({ length: 20 }, (_, i) => ({ 'mcp-session-id': `s-${i}` }));
    const first = await Promise.all(sessions.map((headers) => ask('any', headers)));
    expect(new Set(first)).toEqual(new Set(['blue', 'green']));
    expect(await Promise.all(sessions.map((headers) => ask('any', headers)))).toEqual(first);
  });

  it('split 10,000 calls by their weights', async () => {
    const { id, url } = await gateway({ authorizerType: 'NONE' });
    const counts = { blue: 0, green: 0 };
    const colours = Object.keys(counts) as (keyof typeof counts)[];
    for (const colour of colours)
      await target(id, colour, { passthrough: { endpoint: `${backendUrl}/live/${colour}`, protocolType: 'CUSTOM' } });
    answer = ({ url: path = '' }, response) => {
      counts[path.includes('/green/') ? 'green' : 'blue'] += 1;
      response.end();
    };
    const trafficSplit = colours.map((name) => ({ targetName: name, name, weight: name === 'green' ? 30 : 70 }));
    const actions = [{ routeToTarget: { weightedRoute: { trafficSplit } } }];
    await clients.control.send(new CreateGatewayRuleCommand({ gatewayIdentifier: id, priority: 1, actions }));
    let left = 10_000;
    const caller = async () => {
      while (left-- > 0) {
        const reply = await fetch(`${url}/any/x`);
        expect(reply.status).toBe(200);
        await reply.body?.cancel();
      }
    };
    await Promise.all(Array.from({ length: 16 }, caller));
    expect(counts.blue + counts.green).toBe(10_000);
    // Five deviations of what chance gives.
    expect(Math.abs(counts.green - 3_000)).toBeLessThan(230);
  });

  it('keep a session that a server began where it began', async () => {
    const { gatewayIdentifier } = await colours();
    const trafficSplit = ['blue', 'green'].map((name) => ({ targetName: name, name, weight: 50 }));
    const actions = [{ routeToTarget: { weightedRoute: { trafficSplit } } }];
    await clients.control.send(new CreateGatewayRuleCommand({ gatewayIdentifier, priority: 1, actions }));
    const { items = [] } = await clients.control.send(new ListGatewayTargetsCommand({ gatewayIdentifier }));
    for (const { targetId, name = '' } of items) {
      const passthrough = { endpoint: `${backendUrl}/${name}`, protocolType: 'MCP' };
      const targetConfiguration = { http: { passthrough } } as TargetConfiguration;
      await clients.control.send(
        new UpdateGatewayTargetCommand({ gatewayIdentifier, targetId, name, targetConfiguration }),
      );
    }
    // As servers of MCP do: the first answer names the session.
    let sessions = 0;
    answer = ({ url: path = '', headers }, response) => {
      if (headers['mcp-session-id'] === undefined) response.setHeader('mcp-session-id', `session-${++sessions}`);
      response.end(path.split('/')[1]);
    };
    const url = `${platform.ready.endpoint}/gateways/${gatewayIdentifier}/any/x`;
    for (let i = 0; i < 12; i++) {
      const first = await signed(url);
      const [where, session] = [await first.text(), first.headers.get('mcp-session-id') ?? ''];
      expect(await (await signed(url, { headers: { 'mcp-session-id': session } })).text()).toBe(where);
    }
    expect(sessions).toBe(12);
  });

  it('are refused where they say what cannot be', async () => {
    const { gatewayIdentifier } = await colours();
    const make = (more: object) =>
      clients.control.send(
        new CreateGatewayRuleCommand({ gatewayIdentifier, priority: 1, actions: to('blue'), ...more }),
      );
    const weights = (a: number, b: number) => [
      {
        routeToTarget: {
          weightedRoute: {
            trafficSplit: [
              { targetName: 'blue', name: 'x', weight: a },
              { targetName: 'green', name: 'y', weight: b },
            ],
          },
        },
      },
    ];
    const bundle = {
      bundleArn: `${'arn:aws:bedrock-agentcore:us-east-1:123456789012:configuration-bundle/b'}-0123456789`,
      bundleVersion: crypto.randomUUID(),
    };
    await expect(make({ actions: to('red') })).rejects.toThrow('there is no red');
    await expect(make({ actions: weights(50, 49) })).rejects.toThrow('100 together');
    await expect(make({ actions: [{ configurationBundle: { staticOverride: bundle } }] })).rejects.toThrow(
      'configuration bundles',
    );
    const paths = { matchPaths: { anyOf: ['/a/*'] } };
    await expect(make({ conditions: [paths, paths] })).rejects.toThrow('one of each kind');
    await make({ actions: weights(1, 99) });
    await expect(make({})).rejects.toMatchObject({ name: 'ConflictException' });
    await make({ priority: 2 });
  });
});
