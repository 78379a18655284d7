import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { CompleteResourceTokenAuthCommand } from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateGatewayCommand,
  CreateGatewayTargetCommand,
  type GetGatewayTargetCommandOutput,
  GetOauth2CredentialProviderCommand,
  SynchronizeGatewayTargetsCommand,
  UpdateGatewayTargetCommand,
  UpdateWorkloadIdentityCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Browser } from '../../packages/platform/src/services/identity/flows/testing/browser.ts';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider, consentTo } from '../support/consent-platform.ts';
import { connectMcp, settledTarget } from '../support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const BACK = 'https://app.example/back';
let dataDir: string;
let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;
let providerArn: string;
let backend: Server;
let endpoint: string;
/** Whose token came with each request that had one. */
const seen: (string | undefined)[] = [];

const start = (port?: number): Promise<TestPlatform> =>
  startTestPlatform({ dataDir, ...(port && { port }), args: ['--allow-private-egress', '127.0.0.0/8'] });

beforeAll(async () => {
  // An MCP server that tells nobody anything without a token of the provider.
  backend = createServer(async (request, response) => {
    const token = (request.headers.authorization ?? '').replace(/^Bearer /, '');
    const who = token === '' ? undefined : await provider.whoIs(token);
    seen.push(who);
    if (request.method !== 'POST') return response.writeHead(405).end();
    if (who === undefined) return response.writeHead(401).end();
    const { id, method, params } = (await json(request)) as {
      id?: number;
      method: string;
      params: { protocolVersion: string };
    };
    if (id === undefined) return response.writeHead(202).end();
    const results: Record<string, object> = {
      initialize: {
        ...{
          protocolVersion: params?.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 's', version: '1' },
        },
      },
      'tools/list': { tools: [{ name: 'greet', description: 'Greets', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [{ type: 'text', text: `hello ${who}` }] },
    };
    const result = results[method];
    const error = { code: -32601, message: 'Method not found' };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }));
  });
  await new Promise<void>((done) => backend.listen(0, '127.0.0.1', done));
  endpoint = `http://127.0.0.1:${(backend.address() as AddressInfo).port}/mcp`;
  dataDir = await mkdtemp(join(tmpdir(), 'gateway-consent-'));
  platform = await start();
  clients = clientsOf(platform);
  provider = await connectConsentProvider(clients, 'people');
  const made = await clients.control.send(new GetOauth2CredentialProviderCommand({ name: 'people' }));
  providerArn = made.credentialProviderArn ?? '';
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  backend?.closeAllConnections();
  backend?.close();
  if (dataDir) await rm(dataDir, { recursive: true, force: true });
});

let named = 0;
async function gateway() {
  const { gatewayId: id = '', gatewayUrl: url = '' } = await clients.control.send(
    new CreateGatewayCommand({
      ...{ name: `people-${++named}`, roleArn: platform.ready.defaultRoleArn, authorizerType: 'CUSTOM_JWT' },
      authorizerConfiguration: {
        customJWTAuthorizer: { discoveryUrl: provider.discoveryUrl, allowedAudience: ['agents'] },
      },
    }),
  );
  return { id, url };
}

const definition = (more: { scopes?: string[]; defaultReturnUrl?: string } = {}) => ({
  targetConfiguration: { mcp: { mcpServer: { endpoint } } },
  credentialProviderConfigurations: [
    {
      credentialProviderType: 'OAUTH' as const,
      credentialProvider: {
        oauthCredentialProvider: {
          ...{ providerArn, scopes: ['openid'], grantType: 'AUTHORIZATION_CODE' as const },
          ...more,
        },
      },
    },
  ],
});

async function add(gatewayIdentifier: string, more = {}) {
  const { $metadata: _, ...made } = await clients.control.send(
    new CreateGatewayTargetCommand({ gatewayIdentifier, name: 'server', ...definition(more) }),
  );
  return { ...made, targetId: made.targetId ?? '' };
}

/** The target once it waits for nobody any more. */
async function consented(gatewayId: string, targetId: string): Promise<GetGatewayTargetCommandOutput> {
  let target = await settledTarget(clients, gatewayId, targetId);
  await expect
    .poll(
      async () => {
        target = await settledTarget(clients, gatewayId, targetId);
        return target.status;
      },
      { timeout: 30_000 },
    )
    .not.toMatch(/PENDING_AUTH/);
  return target;
}

const urlOf = ({ authorizationData }: Pick<GetGatewayTargetCommandOutput, 'authorizationData'>): string =>
  authorizationData?.oauth2?.authorizationUrl ?? '';
const userOf = ({ authorizationData }: Pick<GetGatewayTargetCommandOutput, 'authorizationData'>): string =>
  authorizationData?.oauth2?.userId ?? '';

describe('an MCP server whose tools are listed with a consent', () => {
  it('waits for it over a restart of the server, goes on by itself, and asks each user for his own', async () => {
    const { id, url } = await gateway();
    const made = await add(id);
    expect(made).toMatchObject({ status: 'CREATE_PENDING_AUTH' });
    expect(userOf(made)).toMatch(new RegExp(`^${id}_${made.targetId}_\\w{10}$`));
    const { targetId } = made;
    await expect(
      clients.control.send(new SynchronizeGatewayTargetsCommand({ gatewayIdentifier: id, targetIdList: [targetId] })),
    ).rejects.toMatchObject({ name: 'ConflictException' });
    const { port } = new URL(platform.ready.endpoint);
    await platform.end('SIGKILL');
    platform = await start(Number(port));
    expect(await settledTarget(clients, id, targetId)).toMatchObject({
      status: 'CREATE_PENDING_AUTH',
      authorizationData: made.authorizationData,
    });
    expect(seen).toEqual([]);
    provider.loginAs('admin');
    await consentTo(urlOf(made));
    const ready = await consented(id, targetId);
    expect(ready).toMatchObject({ status: 'READY' });
    expect(ready.authorizationData).toBeUndefined();
    expect(new Set(seen)).toEqual(new Set(['admin']));
    const client = await connectMcp(url, { token: await provider.userToken('ada') });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['server___greet']);
    const call = () => client.callTool({ name: 'server___greet', arguments: {} });
    const refused = await call().then(
      () => undefined,
      (error: { data?: { elicitations?: { url: string }[] } }) => error,
    );
    provider.loginAs('ada');
    await consentTo(refused?.data?.elicitations?.[0]?.url ?? '');
    expect(await call()).toMatchObject({ content: [{ text: 'hello ada' }] });
    await client.close();
    // With the same consent again, and a new one where more is asked for.
    await clients.control.send(
      new SynchronizeGatewayTargetsCommand({ gatewayIdentifier: id, targetIdList: [targetId] }),
    );
    expect(await consented(id, targetId)).toMatchObject({ status: 'READY' });
    const input = { gatewayIdentifier: id, targetId, name: 'server', ...definition({ scopes: ['openid', 'read'] }) };
    const updated = await clients.control.send(new UpdateGatewayTargetCommand(input));
    expect(updated).toMatchObject({ status: 'UPDATE_PENDING_AUTH' });
    expect(userOf(updated)).toBe(userOf(made));
    const browser = new Browser();
    await browser.decide(urlOf(updated), 'deny');
    expect(await consented(id, targetId)).toMatchObject({
      status: 'UPDATE_UNSUCCESSFUL',
      statusReasons: [expect.stringContaining('it was denied')],
    });
  });

  it('with a return address: the application says whose consent it was, and nobody else’s counts', async () => {
    const { id } = await gateway();
    await expect(add(id, { defaultReturnUrl: BACK })).rejects.toMatchObject({ name: 'ValidationException' });
    await clients.control.send(
      new UpdateWorkloadIdentityCommand({ name: id, allowedResourceOauth2ReturnUrls: [BACK] }),
    );
    const made = await add(id, { defaultReturnUrl: BACK });
    expect(made).toMatchObject({ status: 'CREATE_PENDING_AUTH' });
    const sessionUri = await broughtBack(urlOf(made));
    const complete = (userId: string) =>
      clients.data.send(new CompleteResourceTokenAuthCommand({ sessionUri, userIdentifier: { userId } }));
    await expect(complete('eve')).rejects.toMatchObject({ name: 'AccessDeniedException' });
    expect(await settledTarget(clients, id, made.targetId)).toMatchObject({ status: 'CREATE_PENDING_AUTH' });
    await complete(userOf(made));
    expect(await consented(id, made.targetId)).toMatchObject({ status: 'READY' });
  });
});

it('an MCP server whose tools are asked for with each request is none to which a person has to consent', async () => {
  const { id: gatewayIdentifier } = await gateway();
  const targetConfiguration = { mcp: { mcpServer: { endpoint, listingMode: 'DYNAMIC' as const } } };
  const input = { gatewayIdentifier, name: 'server', ...definition(), targetConfiguration };
  await expect(clients.control.send(new CreateGatewayTargetCommand(input))).rejects.toMatchObject({
    name: 'ValidationException',
    message: expect.stringMatching(/listingMode must not be DYNAMIC where a person has to consent/),
  });
  const { credentialProviderConfigurations: _, ...open } = input;
  expect((await clients.control.send(new CreateGatewayTargetCommand(open))).targetId).toBeDefined();
});

describe('a link that somebody was sent', () => {
  it('gives his consent to nobody else where an application says who came back', async () => {
    const { id, url } = await gateway();
    await clients.control.send(
      new UpdateWorkloadIdentityCommand({ name: id, allowedResourceOauth2ReturnUrls: [BACK] }),
    );
    const made = await add(id, { defaultReturnUrl: BACK });
    const own = await broughtBack(urlOf(made));
    const owner = { sessionUri: own, userIdentifier: { userId: userOf(made) } };
    await clients.data.send(new CompleteResourceTokenAuthCommand(owner));
    await consented(id, made.targetId);
    // Eve calls, and sends Ada the link that she was given.
    const eve = await provider.userToken('eve');
    const client = await connectMcp(url, { token: eve });
    const call = () => client.callTool({ name: 'server___greet', arguments: {} });
    const asked = (): Promise<string> =>
      call().then(
        () => '',
        (error: { data?: { elicitations?: { url: string }[] } }) => error.data?.elicitations?.[0]?.url ?? '',
      );
    provider.loginAs('ada');
    const sessionUri = await broughtBack(await asked());
    const completed = (userToken: string) =>
      clients.data.send(new CompleteResourceTokenAuthCommand({ sessionUri, userIdentifier: { userToken } }));
    // The application knows who sits before it: Ada.
    await expect(completed(await provider.userToken('ada'))).rejects.toMatchObject({ name: 'AccessDeniedException' });
    expect(await asked()).not.toBe('');
    // Where it were Eve herself, it would count.
    await completed(eve);
    expect((await call()).isError).not.toBe(true);
    await client.close();
  });
});

/** What a person's browser brings the application, after he allowed it. */
async function broughtBack(authorizationUrl: string): Promise<string> {
  const browser = new Browser();
  const { location } = await browser.decide(authorizationUrl);
  const { url } = await browser.follow(location ?? '', ({ host }) => host === 'app.example');
  return new URL(url).searchParams.get('session_id') ?? '';
}
