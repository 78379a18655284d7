import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  CreateApiKeyCredentialProviderCommand,
  CreateGatewayCommand,
  type CreateGatewayCommandInput,
  CreateGatewayTargetCommand,
  type CreateGatewayTargetCommandInput,
  DeleteGatewayCommand,
  DeleteGatewayTargetCommand,
  DeleteResourcePolicyCommand,
  GetApiKeyCredentialProviderCommand,
  GetGatewayCommand,
  GetOauth2CredentialProviderCommand,
  GetResourcePolicyCommand,
  ListGatewaysCommand,
  ListGatewayTargetsCommand,
  ListTagsForResourceCommand,
  PutResourcePolicyCommand,
  SynchronizeGatewayTargetsCommand,
  TagResourceCommand,
  UntagResourceCommand,
  UpdateGatewayCommand,
  UpdateGatewayTargetCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider, consentTo } from '../support/consent-platform.ts';
import { connectMcp, postMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { newUser, setPolicy } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;
let backend: Server;
let backendUrl: string;
const seen: { method: string | undefined; url: string; headers: IncomingMessage['headers']; body: string }[] = [];

/** What the API behind the gateway says of itself. */
const document = () => ({
  openapi: '3.0.3',
  info: { title: 'Orders', version: '1' },
  servers: [{ url: backendUrl }],
  paths: {
    '/orders/{id}': {
      get: {
        operationId: 'getOrder',
        summary: 'Gets one order',
        parameters: [
          { name: 'id', in: 'path', required: true, schema: { type: 'string' } },
          { name: 'fields', in: 'query', schema: { type: 'array', items: { type: 'string' } } },
        ],
        responses: { 200: { description: 'ok', content: { 'application/json': { schema: { type: 'object' } } } } },
      },
      delete: {
        operationId: 'deleteOrder',
        summary: 'Deletes one order',
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
        responses: { 204: { description: 'gone' } },
      },
    },
    '/orders': {
      post: {
        operationId: 'createOrder',
        summary: 'Orders something new for a customer',
        requestBody: {
          required: true,
          content: {
            'application/json': {
              schema: {
                type: 'object',
                required: ['item'],
                properties: { item: { type: 'string' }, count: { type: 'integer', minimum: 1 } },
              },
            },
          },
        },
        responses: { 200: { description: 'ok' } },
      },
    },
    '/broken': { get: { summary: 'has no operationId', responses: { 200: { description: 'ok' } } } },
  },
});

beforeAll(async () => {
  backend = createServer((req, res) => {
    const parts: Buffer[] = [];
    req.on('data', (part: Buffer) => parts.push(part));
    req.on('end', () => {
      const { method, url = '', headers } = req;
      const body = Buffer.concat(parts).toString();
      seen.push({ method, url, headers, body });
      if (url.startsWith('/orders/missing')) {
        const echoed = headers['x-key'] ?? headers.authorization ?? '';
        res.writeHead(404, { 'content-type': 'text/plain' }).end(`no such order; you sent ${echoed} ${url}`);
        return;
      }
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ method, url, body }));
    });
  });
  await new Promise<void>((done) => backend.listen(0, '127.0.0.1', done));
  backendUrl = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`;
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  provider = await connectConsentProvider(clients, 'orders', {
    grantType: 'TOKEN_EXCHANGE',
    tokenExchangeGrantTypeConfig: { actorTokenContent: 'NONE' },
  });
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  backend?.closeAllConnections();
  backend?.close();
});

let named = 0;
async function gateway(more: Partial<CreateGatewayCommandInput> = {}) {
  const made = await clients.control.send(
    new CreateGatewayCommand({
      ...{ name: `tools-${++named}`, roleArn: platform.ready.defaultRoleArn, authorizerType: 'AWS_IAM' },
      ...more,
    }),
  );
  return { id: made.gatewayId ?? '', url: made.gatewayUrl ?? '', made };
}

const withTokens = (): Partial<CreateGatewayCommandInput> => ({
  authorizerType: 'CUSTOM_JWT',
  authorizerConfiguration: {
    customJWTAuthorizer: { discoveryUrl: provider.discoveryUrl, allowedAudience: ['agents'] },
  },
});

async function target(
  gatewayIdentifier: string,
  more: Partial<CreateGatewayTargetCommandInput> = {},
  text = JSON.stringify(document()),
) {
  const { targetId = '' } = await clients.control.send(
    new CreateGatewayTargetCommand({
      ...{ gatewayIdentifier, name: 'shop' },
      targetConfiguration: { mcp: { openApiSchema: { inlinePayload: text } } },
      ...more,
    }),
  );
  return settledTarget(clients, gatewayIdentifier, targetId);
}

const textOf = (result: object): string => {
  const [first] = (result as { content: { text?: string }[] }).content;
  return first?.text ?? '';
};

describe('a gateway with an OpenAPI document behind it', () => {
  it.each(['auto', 'legacy'] as const)(
    'lists and calls its operations as tools, for the official client (%s)',
    async (mode) => {
      const { id, url } = await gateway();
      const made = await target(id);
      expect(made).toMatchObject({ status: 'READY', name: 'shop', protocolType: 'MCP' });
      expect(made.statusReasons?.join()).toContain('operationId');
      const client = await connectMcp(url, { fetch: signingFetch(platform), mode });
      const { tools } = await client.listTools();
      expect(
        tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint, annotations?.destructiveHint]),
      ).toEqual([
        ['shop___createOrder', false, expect.any(Boolean)],
        ['shop___deleteOrder', false, true],
        ['shop___getOrder', true, false],
      ]);
      const got = await client.callTool({ name: 'shop___getOrder', arguments: { id: 'a/b?c', fields: ['x', 'y'] } });
      expect(got.structuredContent).toMatchObject({ method: 'GET', url: '/orders/a%2Fb%3Fc?fields=x&fields=y' });
      expect(JSON.parse(textOf(got))).toEqual(got.structuredContent);
      const created = await client.callTool({ name: 'shop___createOrder', arguments: { item: 'tea', count: 2 } });
      expect(JSON.parse(textOf(created))).toMatchObject({ method: 'POST', body: '{"item":"tea","count":2}' });
      await client.close();
    },
  );

  it('sends nothing that does not fit the schema, and tells a backend’s error as the tool’s', async () => {
    const { id, url } = await gateway();
    await target(id);
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    const before = seen.length;
    const wrong = await client.callTool({ name: 'shop___createOrder', arguments: { item: 7, count: 0 } });
    expect(wrong.isError).toBe(true);
    expect(textOf(wrong)).toMatch(/\/item .*\n.*\/count /s);
    expect(seen).toHaveLength(before);
    const missing = await client.callTool({ name: 'shop___getOrder', arguments: { id: 'missing' } });
    expect(missing.isError).toBe(true);
    expect(textOf(missing)).toContain('404');
    await expect(client.callTool({ name: 'shop___nothing', arguments: {} })).rejects.toThrow('Unknown tool');
    await client.close();
  });

  it('comes from a bucket, too, and a broken one says what is wrong, with its line', async () => {
    const { id, url } = await gateway();
    await clients.s3.send(new CreateBucketCommand({ Bucket: 'documents' }));
    await clients.s3.send(
      new PutObjectCommand({ Bucket: 'documents', Key: 'shop.json', Body: JSON.stringify(document()) }),
    );
    const mcp = { openApiSchema: { s3: { uri: 's3://documents/shop.json' } } };
    const made = await target(id, { targetConfiguration: { mcp } });
    expect(made).toMatchObject({ status: 'READY', targetConfiguration: { mcp } });
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    expect((await client.listTools()).tools).toHaveLength(3);
    const broken = await target(id, { name: 'broken' }, '{\n  "openapi": "3.0.3",\n  "paths": [\n}');
    expect(broken.status).toBe('FAILED');
    expect(broken.statusReasons?.join()).toMatch(/line \d/);
    expect((await client.listTools()).tools).toHaveLength(3);
    await client.close();
  });

  it('keeps its tools when an update brings a broken document, and has the new ones when it does not', async () => {
    const { id, url } = await gateway();
    const { targetId = '' } = await target(id);
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    const update = async (text: string) => {
      const mcp = { openApiSchema: { inlinePayload: text } };
      const targetConfiguration = { mcp };
      await clients.control.send(
        new UpdateGatewayTargetCommand({ gatewayIdentifier: id, targetId, name: 'shop', targetConfiguration }),
      );
      return settledTarget(clients, id, targetId);
    };
    expect(await update('no document')).toMatchObject({ status: 'UPDATE_UNSUCCESSFUL' });
    expect((await client.listTools()).tools).toHaveLength(3);
    const { '/orders': _, ...paths } = document().paths;
    expect(await update(JSON.stringify({ ...document(), paths }))).toMatchObject({ status: 'READY' });
    await expect
      .poll(async () => (await client.listTools()).tools.map(({ name }) => name))
      .toEqual(['shop___deleteOrder', 'shop___getOrder']);
    await client.close();
  });
});

it('a target that is changed and deleted under load: calls have a result, or the tool is unknown', async () => {
  const { id, url } = await gateway();
  const { targetId = '' } = await target(id);
  const clientsAtOnce = await Promise.all(
    Array.from({ length: 16 }, () => connectMcp(url, { fetch: signingFetch(platform) })),
  );
  let results = 0;
  const wrong: unknown[] = [];
  let deleted = false;
  const loop = async (client: Awaited<ReturnType<typeof connectMcp>>): Promise<void> => {
    for (let at = 0; ; at++) {
      try {
        const result = await client.callTool({ name: 'shop___getOrder', arguments: { id: String(at) } });
        if (result.isError) wrong.push(result);
        results++;
      } catch (error) {
        if (!deleted || !/Unknown tool/.test(String(error))) wrong.push(error);
        return;
      }
    }
  };
  const loops = Promise.all(clientsAtOnce.map(loop));
  for (let change = 1; change <= 5; change++) {
    const before = results;
    await expect.poll(() => results, { timeout: 60_000 }).toBeGreaterThan(before + 16);
    const inlinePayload = JSON.stringify({ ...document(), info: { title: `Orders ${change}`, version: '1' } });
    const targetConfiguration = { mcp: { openApiSchema: { inlinePayload } } };
    await clients.control.send(
      new UpdateGatewayTargetCommand({ gatewayIdentifier: id, targetId, name: 'shop', targetConfiguration }),
    );
    expect(await settledTarget(clients, id, targetId)).toMatchObject({ status: 'READY' });
  }
  expect(wrong).toEqual([]);
  deleted = true;
  await clients.control.send(new DeleteGatewayTargetCommand({ gatewayIdentifier: id, targetId }));
  await loops;
  expect(wrong).toEqual([]);
  await Promise.all(clientsAtOnce.map((client) => client.close()));
});

describe('who comes in', () => {
  it('only who may invoke it, where requests are signed', async () => {
    const { id, url, made } = await gateway();
    await target(id);
    const credentials = await newUser(platform, 'caller', [
      { Effect: 'Allow', Action: 'bedrock-agentcore:ListGateways', Resource: '*' },
    ]);
    const call = async () => (await connectMcp(url, { fetch: signingFetch(platform, credentials) })).listTools();
    await expect(call()).rejects.toThrow();
    await setPolicy(
      platform,
      'caller',
      [{ Effect: 'Allow', Action: 'bedrock-agentcore:InvokeGateway', Resource: made.gatewayArn }],
      'users',
    );
    await expect.poll(async () => (await call()).tools.length, { timeout: 30_000 }).toBe(3);
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(403);
  });

  it('only with a token that fits; a client without one is told where to get it', async () => {
    const { id, url } = await gateway(withTokens());
    await target(id);
    const refused = await fetch(url, { method: 'POST', body: '{}' });
    expect(refused.status).toBe(401);
    const [, metadata = ''] = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '') ?? [];
    expect(await (await fetch(metadata)).json()).toMatchObject({
      resource: url,
      authorization_servers: [provider.issuer],
      bearer_methods_supported: ['header'],
    });
    const client = await connectMcp(url, { token: await provider.userToken('ada') });
    expect((await client.listTools()).tools).toHaveLength(3);
    await expect(connectMcp(url, { token: 'a.b.c' })).rejects.toThrow();
    await expect(connectMcp(url, { fetch: signingFetch(platform) })).rejects.toThrow();
    await client.close();
  });

  it('with scopes: the challenge names them as the provider calls them', async () => {
    const rules = {
      discoveryUrl: provider.discoveryUrl,
      allowedScopes: ['orders'],
      advertisedScopeMapping: { orders: 'api://shop/orders' },
    };
    const { url } = await gateway({ ...withTokens(), authorizerConfiguration: { customJWTAuthorizer: rules } });
    const headers = { authorization: `Bearer ${await provider.userToken('ada')}` };
    const answer = await fetch(url, { method: 'POST', body: '{}', headers });
    expect(answer.status).toBe(403);
    expect(answer.headers.get('www-authenticate')).toMatch(/insufficient_scope.*scope="api:\/\/shop\/orders"/);
  });

  it('everybody, where it is open, but no page of another origin', async () => {
    const { id, url } = await gateway({ authorizerType: 'NONE' });
    await target(id);
    const client = await connectMcp(url);
    expect((await client.listTools()).tools).toHaveLength(3);
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const asked = (origin: string) =>
      fetch(url, { method: 'POST', body: JSON.stringify(message), headers: { ...headers, origin } });
    expect((await asked('https://evil.example')).status).toBe(403);
    expect((await asked(platform.ready.endpoint)).status).toBe(200);
    // A name that was made to lead here is no better, although it says itself that it is here.
    const { port, pathname } = new URL(url);
    const rebound = { ...headers, host: `evil.example:${port}`, origin: `http://evil.example:${port}` };
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const asking = request(
        { port, host: '127.0.0.1', path: pathname, method: 'POST', headers: rebound },
        (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        },
      );
      asking.on('error', reject).end(JSON.stringify(message));
    });
    expect(status).toBe(403);
    expect(platform.log()).toContain('without inbound authorization');
    await client.close();
  });
});

describe('a gateway with domains of its own', () => {
  const domainOverride = { default: 'tools.example.com', alternateDomains: ['Other.example.com'] };
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

  /** The client of JavaScript does not know the field yet. */
  async function newGateway(more: object): Promise<{ gatewayUrl: string; domainOverride: object }> {
    const content = { name: `tools-${++named}`, roleArn: platform.ready.defaultRoleArn, domainOverride, ...more };
    const answer = await signedFetch(platform, { method: 'POST', path: '/gateways/', content });
    expect(answer.status).toBe(202);
    return answer.json() as Promise<{ gatewayUrl: string; domainOverride: object }>;
  }

  /** The answer at that path to who comes by that name. */
  async function by(host: string, path: string, more: Record<string, string> = {}, body?: object) {
    const { port } = new URL(platform.ready.endpoint);
    const method = body ? 'POST' : 'GET';
    const asking = request({ port, host: '127.0.0.1', path, method, headers: { ...headers, ...more, host } });
    asking.end(body && JSON.stringify(body));
    const [answer] = (await once(asking, 'response')) as [IncomingMessage];
    let text = '';
    for await (const part of answer) text += part;
    return { status: answer.statusCode, challenge: String(answer.headers['www-authenticate']), text };
  }

  it('is told by the first, and tells who comes by one of them so', async () => {
    const made = await newGateway(withTokens());
    expect(made.domainOverride).toEqual(domainOverride);
    const { origin, pathname } = new URL(made.gatewayUrl);
    expect(origin).toBe('https://tools.example.com');
    const metadata = `/.well-known/oauth-protected-resource${pathname}`;
    for (const [host, at] of [
      ['tools.example.com', 'https://tools.example.com'],
      ['other.example.com:443', 'https://other.example.com'],
      ['evil.example.com', 'http://evil.example.com'],
    ] as const) {
      const refused = await by(host, pathname, {}, {});
      expect(refused.status).toBe(401);
      expect(refused.challenge.includes(`resource_metadata="${at}${metadata}"`)).toBe(true);
      expect(JSON.parse((await by(host, metadata)).text).resource).toBe(`${at}${pathname}`);
    }
  });

  it('takes requests of pages at its domains where it is open, and of no others', async () => {
    const { pathname } = new URL((await newGateway({ authorizerType: 'NONE' })).gatewayUrl);
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const asked = async (host: string, origin: string): Promise<number | undefined> =>
      (await by(host, pathname, { origin }, message)).status;
    expect(await asked('tools.example.com', 'https://tools.example.com')).toBe(200);
    expect(await asked('tools.example.com', 'https://evil.example.com')).toBe(403);
    expect(await asked('evil.example.com', 'https://evil.example.com')).toBe(403);
  });
});

describe('what goes out', () => {
  it('an API key, at the place that the target names, and in no answer', async () => {
    await clients.control.send(
      new CreateApiKeyCredentialProviderCommand({ name: 'shop-key', apiKey: 'canary-key-4711' }),
    );
    const { credentialProviderArn: providerArn = '' } = await clients.control.send(
      new GetApiKeyCredentialProviderCommand({ name: 'shop-key' }),
    );
    const { id, url } = await gateway();
    const config = (apiKeyCredentialProvider: object) => [
      {
        credentialProviderType: 'API_KEY' as const,
        credentialProvider: { apiKeyCredentialProvider: { providerArn, ...apiKeyCredentialProvider } },
      },
    ];
    await target(id, {
      name: 'header',
      credentialProviderConfigurations: config({
        credentialLocation: 'HEADER',
        credentialParameterName: 'X-Key',
        credentialPrefix: 'Key',
      }),
    });
    await target(id, {
      name: 'query',
      credentialProviderConfigurations: config({
        credentialLocation: 'QUERY_PARAMETER',
        credentialParameterName: 'api_key',
      }),
    });
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    const first = await client.callTool({ name: 'header___getOrder', arguments: { id: 'missing' } });
    expect(seen.at(-1)?.headers['x-key']).toBe('Key canary-key-4711');
    const second = await client.callTool({ name: 'query___getOrder', arguments: { id: 'missing' } });
    expect(seen.at(-1)?.url).toBe('/orders/missing?api_key=canary-key-4711');
    for (const result of [first, second]) {
      expect(textOf(result)).toContain('404');
      expect(JSON.stringify(result)).not.toContain('canary-key');
    }
    // Two callers, one key: the backend sees one and the same.
    const credentials = await newUser(platform, 'second-caller', [
      { Effect: 'Allow', Action: 'bedrock-agentcore:InvokeGateway', Resource: '*' },
    ]);
    const other = await connectMcp(url, { fetch: signingFetch(platform, credentials) });
    await other.callTool({ name: 'header___getOrder', arguments: { id: '1' } });
    expect(seen.at(-1)?.headers['x-key']).toBe('Key canary-key-4711');
    await client.close();
    await other.close();
    expect(platform.log()).not.toContain('canary-key');
  });

  it('a token of each user’s own by exchange: two users, two identities, and never the token that they came with', async () => {
    const { credentialProviderArn: providerArn = '' } = await clients.control.send(
      new GetOauth2CredentialProviderCommand({ name: 'orders' }),
    );
    const { id, url, made } = await gateway(withTokens());
    const oauthCredentialProvider = { providerArn, scopes: ['openid'], grantType: 'TOKEN_EXCHANGE' as const };
    const credentialProviderConfigurations = [
      { credentialProviderType: 'OAUTH' as const, credentialProvider: { oauthCredentialProvider } },
    ];
    await target(id, { credentialProviderConfigurations });
    for (const user of ['ada', 'bob']) {
      const token = await provider.userToken(user);
      const client = await connectMcp(url, { token });
      const { isError } = await client.callTool({ name: 'shop___getOrder', arguments: { id: '1' } });
      expect(isError).not.toBe(true);
      const sent = (seen.at(-1)?.headers.authorization ?? '').replace('Bearer ', '');
      expect(sent).not.toBe(token);
      expect(decodeJwt(sent)).toMatchObject({ sub: user });
      await client.close();
    }
    // Nor once its callers bring none any more.
    const { gatewayIdentifier, name = '', roleArn } = { gatewayIdentifier: id, ...made };
    for (const authorizerType of ['AWS_IAM', 'NONE'] as const)
      await expect(
        clients.control.send(new UpdateGatewayCommand({ gatewayIdentifier, name, roleArn, authorizerType })),
      ).rejects.toThrow(
        /authorizerType does not fit the target shop.*TOKEN_EXCHANGE need a gateway whose callers bring/,
      );
    await clients.control.send(
      new UpdateGatewayCommand({ gatewayIdentifier, name, roleArn, authorizerType: 'CUSTOM_JWT', ...withTokens() }),
    );
    // Without a JWT there is nobody to exchange a token of.
    const { id: signed } = await gateway();
    await expect(target(signed, { credentialProviderConfigurations })).rejects.toThrow(
      /TOKEN_EXCHANGE need a gateway whose callers bring a JWT/,
    );
  });

  it('a token after consent: the client is told where, and the call goes through afterwards', async () => {
    const { credentialProviderArn: providerArn = '' } = await clients.control.send(
      new GetOauth2CredentialProviderCommand({ name: 'orders' }),
    );
    const { id, url } = await gateway(withTokens());
    const oauthCredentialProvider = { providerArn, scopes: ['openid'], grantType: 'AUTHORIZATION_CODE' as const };
    await target(id, {
      credentialProviderConfigurations: [
        { credentialProviderType: 'OAUTH' as const, credentialProvider: { oauthCredentialProvider } },
      ],
    });
    const client = await connectMcp(url, { token: await provider.userToken('ada') });
    const call = () => client.callTool({ name: 'shop___getOrder', arguments: { id: '1' } });
    const refused = await call().then(
      () => undefined,
      (error: { code?: number; data?: { elicitations?: { url: string }[] } }) => error,
    );
    expect(refused).toMatchObject({ code: -32042, data: { elicitations: [{ mode: 'url' }] } });
    provider.loginAs('ada');
    await consentTo(refused?.data?.elicitations?.[0]?.url ?? '');
    expect((await call()).isError).not.toBe(true);
    expect(await provider.whoIs((seen.at(-1)?.headers.authorization ?? '').replace('Bearer ', ''))).toBe('ada');
    await client.close();
  });
});

describe('a server that answers with what cannot be stored', () => {
  it.each([
    ['a zero byte', 'a\u0000b'],
    ['half a character at the end of the excerpt', `${'x'.repeat(499)}😀`],
  ])('fails its target, once and with a reason: %s', async (_what, text) => {
    let asked = 0;
    const hostile = createServer((req, res) => {
      asked++;
      req.resume();
      res.writeHead(403, { 'content-type': 'text/plain' }).end(text);
    });
    await new Promise<void>((done) => hostile.listen(0, '127.0.0.1', done));
    try {
      const { id } = await gateway();
      const endpoint = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}/mcp`;
      const made = await target(id, { targetConfiguration: { mcp: { mcpServer: { endpoint } } } });
      expect(made).toMatchObject({ status: 'FAILED', statusReasons: [expect.stringContaining('403')] });
      expect(asked).toBeGreaterThan(0);
    } finally {
      hostile.closeAllConnections();
      hostile.close();
    }
  });
});

describe('who adds a target', () => {
  it('names no provider that he may not use himself', async () => {
    await clients.control.send(new CreateApiKeyCredentialProviderCommand({ name: 'others-key', apiKey: 'not-his' }));
    const { credentialProviderArn: providerArn = '' } = await clients.control.send(
      new GetApiKeyCredentialProviderCommand({ name: 'others-key' }),
    );
    const { id } = await gateway();
    const may = (Action: string) => ({ Effect: 'Allow', Action: `bedrock-agentcore:${Action}`, Resource: '*' });
    const credentials = await newUser(platform, 'adder', [may('*GatewayTarget')]);
    const own = clientsOf(platform, { credentials });
    const input = {
      ...{ gatewayIdentifier: id, name: 'shop' },
      targetConfiguration: { mcp: { openApiSchema: { inlinePayload: JSON.stringify(document()) } } },
      credentialProviderConfigurations: [
        {
          credentialProviderType: 'API_KEY' as const,
          credentialProvider: { apiKeyCredentialProvider: { providerArn } },
        },
      ],
    };
    const add = () => own.control.send(new CreateGatewayTargetCommand(input));
    await expect(add()).rejects.toMatchObject({
      name: 'AccessDeniedException',
      message: expect.stringContaining('GetResourceApiKey'),
    });
    await setPolicy(platform, 'adder', [may('*GatewayTarget'), may('GetResourceApiKey')], 'users');
    expect((await add()).targetId).toBeDefined();
    own.close();
  });

  it('lends no credential where the gateway only authenticates', async () => {
    const { credentialProviderArn: providerArn = '' } = await clients.control.send(
      new GetOauth2CredentialProviderCommand({ name: 'orders' }),
    );
    const { discoveryUrl } = provider;
    const { id, url } = await gateway({
      authorizerType: 'AUTHENTICATE_ONLY',
      authorizerConfiguration: { customJWTAuthorizer: { discoveryUrl } },
    });
    const oauthCredentialProvider = { providerArn, scopes: ['openid'] };
    const credentialProviderConfigurations = [
      { credentialProviderType: 'OAUTH' as const, credentialProvider: { oauthCredentialProvider } },
    ];
    await expect(target(id, { credentialProviderConfigurations })).rejects.toThrow(/JWT_PASSTHROUGH, or none/);
    await target(id, { credentialProviderConfigurations: [{ credentialProviderType: 'JWT_PASSTHROUGH' }] });
    const token = await provider.userToken('ada');
    const client = await connectMcp(url, { token });
    await client.callTool({ name: 'shop___getOrder', arguments: { id: '1' } });
    expect(seen.at(-1)?.headers.authorization).toBe(`Bearer ${token}`);
    await client.close();
  });
});

describe('search', () => {
  it('is a tool where the gateway has it, and is not there otherwise', async () => {
    const { id, url } = await gateway({ protocolConfiguration: { mcp: { searchType: 'SEMANTIC' } } });
    await target(id);
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    expect((await client.listTools()).tools[0]?.name).toBe('x_agentplatform_search');
    for (const name of ['x_agentplatform_search', 'x_amz_bedrock_agentcore_search']) {
      const result = await client.callTool({ name, arguments: { query: 'order something new' } });
      expect(result.structuredContent).toMatchObject({ tools: [{ name: 'shop___createOrder' }, {}, {}] });
    }
    await client.close();
    const plain = await gateway();
    const without = await connectMcp(plain.url, { fetch: signingFetch(platform) });
    expect((await without.listTools()).tools).toEqual([]);
    await expect(without.callTool({ name: 'x_agentplatform_search', arguments: { query: 'x' } })).rejects.toThrow(
      'Unknown tool',
    );
    await without.close();
  });
});

describe('settings of a gateway for MCP', () => {
  it('instructions reach the client, changed ones too', async () => {
    const instructions = 'Ask before you order.';
    const { id, url, made } = await gateway({ protocolConfiguration: { mcp: { instructions } } });
    const told = async (mode: 'auto' | 'legacy') => {
      const client = await connectMcp(url, { fetch: signingFetch(platform), mode });
      const said = client.getInstructions();
      await client.close();
      return said;
    };
    for (const mode of ['auto', 'legacy'] as const) expect(await told(mode)).toBe(instructions);
    const { name = '', roleArn } = made;
    const protocolConfiguration = { mcp: { instructions: 'Order at once.' } };
    const change = { gatewayIdentifier: id, name, roleArn, authorizerType: 'AWS_IAM' as const, protocolConfiguration };
    await clients.control.send(new UpdateGatewayCommand(change));
    expect(await told('auto')).toBe('Order at once.');
  });

  it('versions that are not among supportedVersions are not spoken', async () => {
    const initialize = (protocolVersion: string) => ({
      ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
      params: { protocolVersion, capabilities: {}, clientInfo: { name: 'test', version: '1' } },
    });
    const by = { fetch: signingFetch(platform) };
    const version = async (url: string, asked: string): Promise<unknown> =>
      (await postMcp(url, initialize(asked), by)).json;
    const all = await gateway();
    const older = await gateway({ protocolConfiguration: { mcp: { supportedVersions: ['2025-06-18'] } } });
    const newest = await gateway({ protocolConfiguration: { mcp: { supportedVersions: ['2026-07-28'] } } });
    expect(await version(all.url, '2025-11-25')).toMatchObject({ result: { protocolVersion: '2025-11-25' } });
    expect(await version(older.url, '2025-11-25')).toMatchObject({ result: { protocolVersion: '2025-06-18' } });
    expect(await version(newest.url, '2025-11-25')).toMatchObject({ error: { code: expect.any(Number) } });
    // The client of 2026-07-28 takes what there is.
    for (const [{ url }, spoken] of [
      [all, '2026-07-28'],
      [older, '2025-06-18'],
      [newest, '2026-07-28'],
    ] as const) {
      const client = await connectMcp(url, { ...by, mode: 'auto' });
      expect(client.getNegotiatedProtocolVersion()).toBe(spoken);
      await client.close();
    }
    await expect(connectMcp(newest.url, { ...by, mode: 'legacy' })).rejects.toThrow();
  });

  it('disableMcpListToolsPagination puts all tools on one page', async () => {
    const paths = Object.fromEntries(
      Array.from({ length: 1_001 }, (_, at) => [
        `/things/${at}`,
        { get: { operationId: `thing${at}`, responses: { 200: { description: 'ok' } } } },
      ]),
    );
    const text = JSON.stringify({ ...document(), paths });
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const listed = async (mcp: object) => {
      const { id, url, made } = await gateway();
      expect(await target(id, {}, text)).toMatchObject({ status: 'READY' });
      // The client of JavaScript does not know the field yet.
      const { name = '', roleArn, authorizerType } = made;
      const content = { name, roleArn, authorizerType, protocolConfiguration: { mcp } };
      const changed = await signedFetch(platform, { method: 'PUT', path: `/gateways/${id}/`, content });
      expect(changed.status).toBe(202);
      const { json } = await postMcp(url, list, { fetch: signingFetch(platform) });
      const { tools, nextCursor } = (json as { result: { tools: object[]; nextCursor?: string } }).result;
      return { tools: tools.length, more: nextCursor !== undefined };
    };
    expect(await listed({})).toEqual({ tools: 1_000, more: true });
    expect(await listed({ disableMcpListToolsPagination: true })).toEqual({ tools: 1_001, more: false });
  });
});

describe('the operations', () => {
  it('show, list, change and remove gateways and targets', async () => {
    const { control } = clients;
    const { id, made } = await gateway({ description: 'before' });
    const gatewayIdentifier = id;
    expect(made.workloadIdentityDetails?.workloadIdentityArn).toContain(id);
    const { name = '', roleArn } = made;
    await control.send(
      new UpdateGatewayCommand({ gatewayIdentifier, name, roleArn, authorizerType: 'AWS_IAM', description: 'after' }),
    );
    expect(await control.send(new GetGatewayCommand({ gatewayIdentifier }))).toMatchObject({
      description: 'after',
      status: 'READY',
    });
    expect((await control.send(new ListGatewaysCommand({}))).items?.map(({ gatewayId }) => gatewayId)).toContain(id);
    const { targetId = '' } = await target(id);
    await expect(control.send(new DeleteGatewayCommand({ gatewayIdentifier }))).rejects.toMatchObject({
      name: 'ConflictException',
    });
    expect((await control.send(new ListGatewayTargetsCommand({ gatewayIdentifier }))).items).toMatchObject([
      { targetId, status: 'READY', targetType: 'OPEN_API_SCHEMA' },
    ]);
    await expect(
      control.send(new SynchronizeGatewayTargetsCommand({ gatewayIdentifier, targetIdList: [targetId] })),
    ).rejects.toMatchObject({ name: 'ValidationException' });
    await control.send(new DeleteGatewayTargetCommand({ gatewayIdentifier, targetId }));
    expect(await control.send(new DeleteGatewayCommand({ gatewayIdentifier }))).toMatchObject({ status: 'DELETING' });
    await expect(control.send(new GetGatewayCommand({ gatewayIdentifier }))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
  });

  it('give it tags and a policy, and take them away', async () => {
    const { control } = clients;
    const { url, made } = await gateway({ tags: { team: 'a' } });
    const { gatewayArn: resourceArn = '' } = made;
    const tags = async () => (await control.send(new ListTagsForResourceCommand({ resourceArn }))).tags;
    expect(await tags()).toEqual({ team: 'a' });
    await control.send(new TagResourceCommand({ resourceArn, tags: { team: 'b', stage: 'test' } }));
    expect(await tags()).toEqual({ team: 'b', stage: 'test' });
    await control.send(new UntagResourceCommand({ resourceArn, tagKeys: ['stage'] }));
    expect(await tags()).toEqual({ team: 'b' });
    const Action = 'bedrock-agentcore:InvokeGateway';
    const statement = { Effect: 'Deny', Principal: '*', Action, Resource: resourceArn };
    const policy = JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const status = async () => (await postMcp(url, list, { fetch: signingFetch(platform) })).status;
    await control.send(new PutResourcePolicyCommand({ resourceArn, policy }));
    const kept = await control.send(new GetResourcePolicyCommand({ resourceArn }));
    expect(JSON.parse(kept.policy ?? '')).toMatchObject({ Statement: [statement] });
    expect(await status()).toBe(403);
    await control.send(new DeleteResourcePolicyCommand({ resourceArn }));
    await expect(control.send(new GetResourcePolicyCommand({ resourceArn }))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
    expect(await status()).toBe(200);
  });

  it('refuse by its name what is not served', async () => {
    await expect(
      gateway({ kmsKeyArn: 'arn:aws:kms:us-east-1:123456789012:key/12345678-1234-1234-1234-123456789012' }),
    ).rejects.toThrow(/kmsKeyArn/);
    await expect(gateway({ authorizerType: 'CUSTOM_JWT' })).rejects.toThrow(/customJWTAuthorizer/);
  });
});
