import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import {
  CreateGatewayCommand,
  CreateGatewayTargetCommand,
  type CreateGatewayTargetCommandInput,
  type CredentialProviderConfiguration,
  UpdateGatewayCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAuthenticator } from '../../packages/platform/src/kernel/auth/index.ts';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { connectMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { newRole, newUser, setPolicy } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const FILE_KEYS = { accessKeyId: 'AKIAOFTHEROLE', secretAccessKey: 'what/the+operator-gave' };
let platform: TestPlatform;
let clients: Clients;
let folder: string;
let roleArn: string;
let foreign: Server;
let foreignUrl: string;
const seen: { request: IncomingMessage; body: Buffer }[] = [];
let answerWith: (request: IncomingMessage) => { status: number; headers?: Record<string, string>; text: string };

beforeAll(async () => {
  foreign = createServer(async (request, response) => {
    seen.push({ request, body: await buffer(request) });
    const { status, headers, text } = answerWith(request);
    response.writeHead(status, { 'content-type': 'text/plain', ...headers }).end(text);
  });
  await new Promise<void>((done) => foreign.listen(0, '127.0.0.1', done));
  const { port } = foreign.address() as AddressInfo;
  foreignUrl = `http://127.0.0.1:${port}`;
  folder = await mkdtemp(join(tmpdir(), 'gateway-iam-'));
  const file = join(folder, 'roles');
  const { accessKeyId, secretAccessKey } = FILE_KEYS;
  platform = await startTestPlatform({
    args: ['--allow-private-egress', '127.0.0.0/8', '--gateway-role-credentials', file],
  });
  clients = clientsOf(platform);
  roleArn = await newRole(platform, 'of-gateways', [
    { Effect: 'Allow', Action: 's3:GetObject', Resource: 'arn:aws:s3:::open/*' },
    { Effect: 'Allow', Action: 'bedrock-agentcore:InvokeGateway', Resource: '*' },
  ]);
  // It is read at each use.
  await writeFile(
    file,
    `[${roleArn}]\naws_access_key_id=${accessKeyId}\naws_secret_access_key=${secretAccessKey}\nhosts=127.0.0.1:${port}\n`,
  );
  for (const Bucket of ['open', 'closed']) {
    await clients.s3.send(new CreateBucketCommand({ Bucket }));
    await clients.s3.send(
      new PutObjectCommand({ Bucket, Key: 'a b.txt', Body: `of ${Bucket}`, ContentType: 'text/plain' }),
    );
  }
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  foreign?.closeAllConnections();
  foreign?.close();
  if (folder) await rm(folder, { recursive: true });
});

let named = 0;
async function gateway(more: object = {}) {
  const { gatewayId = '', gatewayUrl = '' } = await clients.control.send(
    new CreateGatewayCommand({ name: `signed-${++named}`, roleArn, authorizerType: 'AWS_IAM', ...more }),
  );
  return { id: gatewayId, url: gatewayUrl };
}

const byRole = (iamCredentialProvider?: { service: string; region?: string }): CredentialProviderConfiguration[] => [
  {
    credentialProviderType: 'GATEWAY_IAM_ROLE',
    ...(iamCredentialProvider && { credentialProvider: { iamCredentialProvider } }),
  },
];
const byCaller = (service = 'bedrock-agentcore'): CredentialProviderConfiguration[] => [
  { credentialProviderType: 'CALLER_IAM_CREDENTIALS', credentialProvider: { iamCredentialProvider: { service } } },
];

/** An API that hands out objects: the platform's own object store, or the server of the test. */
const objectsAt = (url: string) => ({
  openApiSchema: {
    inlinePayload: JSON.stringify({
      openapi: '3.0.3',
      info: { title: 'Objects', version: '1' },
      servers: [{ url }],
      paths: {
        '/{bucket}/{key}': {
          get: {
            operationId: 'getObject',
            parameters: ['bucket', 'key'].map((name) => ({
              ...{ name, in: 'path', required: true, schema: { type: 'string' } },
            })),
            responses: { 200: { description: 'ok' } },
          },
        },
        '/search': {
          post: {
            operationId: 'search',
            parameters: [{ name: 'q', in: 'query', schema: { type: 'array', items: { type: 'string' } } }],
            requestBody: { content: { 'application/json': { schema: { type: 'object' } } } },
            responses: { 200: { description: 'ok' } },
          },
        },
      },
    }),
  },
});

async function target(
  gatewayIdentifier: string,
  mcp: NonNullable<CreateGatewayTargetCommandInput['targetConfiguration']>['mcp'],
  credentialProviderConfigurations: CredentialProviderConfiguration[],
  by: Clients = clients,
) {
  const { targetId = '' } = await by.control.send(
    new CreateGatewayTargetCommand({
      ...{ gatewayIdentifier, name: 'behind', credentialProviderConfigurations },
      targetConfiguration: { mcp },
    } as CreateGatewayTargetCommandInput),
  );
  return settledTarget(clients, gatewayIdentifier, targetId);
}

/** Who has signed a request to the server of the test, as far as it knows keys: the platform's own verifier shares nothing with its signer. */
async function signerOf(
  { method = '', url: rawUrl = '', rawHeaders }: IncomingMessage,
  { service, region }: { service: string; region: string },
): Promise<string> {
  const authenticator = createAuthenticator({
    ...{ clock: systemClock, region },
    keys: {
      find: (accessKeyId, token) =>
        accessKeyId === FILE_KEYS.accessKeyId && token === undefined
          ? {
              secretAccessKey: FILE_KEYS.secretAccessKey,
              principal: { kind: 'iam', accountId: '1', arn: 'arn:role', accessKeyId, tags: {} },
            }
          : undefined,
    },
  });
  return (await authenticator.authenticate({ method, rawUrl, rawHeaders, service })).principal.arn;
}

const textOf = (result: object): string =>
  (result as { content: { text?: string }[] }).content.map(({ text }) => text).join();

describe('a target that is called with the gateway’s role', () => {
  it('is the platform’s own object store: what the role may read is read, and nothing else', async () => {
    const { id, url } = await gateway();
    const made = await target(id, objectsAt(`${platform.ready.endpoint}/s3`), byRole({ service: 's3' }));
    expect(made).toMatchObject({ status: 'READY' });
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    const get = (bucket: string) =>
      client.callTool({ name: 'behind___getObject', arguments: { bucket, key: 'a b.txt' } });
    expect(await get('open')).toMatchObject({ content: [{ text: 'of open' }] });
    const refused = await get('closed');
    expect(refused.isError).toBe(true);
    expect(textOf(refused)).toContain('403');
    await client.close();
  });

  it('is an MCP server of the platform: its tools are listed and called by the role', async () => {
    const inner = await gateway();
    await target(inner.id, objectsAt(`${platform.ready.endpoint}/s3`), byRole({ service: 's3' }));
    const { id, url } = await gateway();
    const made = await target(id, { mcpServer: { endpoint: inner.url } }, byRole({ service: 'bedrock-agentcore' }));
    expect(made).toMatchObject({ status: 'READY' });
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('behind___behind___getObject');
    const result = await client.callTool({
      ...{ name: 'behind___behind___getObject', arguments: { bucket: 'open', key: 'a b.txt' } },
    });
    expect(textOf(result)).toContain('of open');
    await client.close();
  });

  it('is another service, to which the operator gave the role keys: it can tell that the signature is genuine', async () => {
    const { id, url } = await gateway();
    await target(id, objectsAt(foreignUrl), byRole({ service: 'objects', region: 'eu-test-1' }));
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    answerWith = ({ headers }) => ({ status: 200, text: `you sent ${headers.authorization}` });
    const result = await client.callTool({ name: 'behind___search', arguments: { q: ['a b', 'c+d'], body: { x: 1 } } });
    const { request } = seen.at(-1) ?? expect.unreachable();
    expect(await signerOf(request, { service: 'objects', region: 'eu-test-1' })).toBe('arn:role');
    // What it echoes tells nobody a signature that could be used again.
    const [, signature = 'none'] = /Signature=([0-9a-f]{64})/.exec(request.headers.authorization ?? '') ?? [];
    expect(textOf(result)).toContain('you sent');
    expect(textOf(result)).not.toContain(signature);
    await client.close();
  });

  it('is left alone where it redirects: nothing signed goes elsewhere', async () => {
    const { id, url } = await gateway();
    await target(id, objectsAt(foreignUrl), byRole({ service: 'objects' }));
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    const before = seen.length;
    answerWith = () => ({ status: 307, headers: { location: `${foreignUrl}/elsewhere` }, text: '' });
    const result = await client.callTool({ name: 'behind___getObject', arguments: { bucket: 'a', key: 'b' } });
    expect(textOf(result)).toContain('307');
    expect(seen.slice(before).map(({ request }) => request.url)).toEqual(['/a/b']);
    await client.close();
  });

  it('is not called at a host for which the role has no keys, and says so when it is made', async () => {
    const { id, url } = await gateway();
    const elsewhere = foreignUrl.replace('127.0.0.1', '127.0.0.2');
    const made = await target(id, objectsAt(elsewhere), byRole({ service: 's3' }));
    expect(made.statusReasons?.join()).toMatch(/127\.0\.0\.2.*no keys for that host/);
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    const result = await client.callTool({ name: 'behind___getObject', arguments: { bucket: 'a', key: 'b' } });
    expect(textOf(result)).toMatch(/no keys for that host/);
    await expect(
      target(id, { mcpServer: { endpoint: `${elsewhere}/mcp` } }, byRole({ service: 'bedrock-agentcore' })),
    ).rejects.toThrow(/no keys for that host/);
    await client.close();
  });

  it('is added only by who may pass the role on, with the service where the document does not say it', async () => {
    const { id } = await gateway();
    const may = (Action: string, Resource = '*') => ({ Effect: 'Allow', Action, Resource });
    const credentials = await newUser(platform, 'maker', [may('bedrock-agentcore:*GatewayTarget')]);
    const own = clientsOf(platform, { credentials });
    const add = () => target(id, objectsAt(`${platform.ready.endpoint}/s3`), byRole({ service: 's3' }), own);
    await expect(add()).rejects.toMatchObject({
      name: 'AccessDeniedException',
      message: expect.stringContaining('iam:PassRole'),
    });
    await setPolicy(
      platform,
      'maker',
      [may('bedrock-agentcore:*GatewayTarget'), may('iam:PassRole', roleArn)],
      'users',
    );
    expect(await add()).toMatchObject({ status: 'READY' });
    own.close();
    await expect(target(id, objectsAt(foreignUrl), byRole())).rejects.toThrow(
      /iamCredentialProvider, with the service/,
    );
    await expect(target(id, { smithyModel: { inlinePayload: '{}' } }, byRole({ service: 's3' }))).rejects.toThrow(
      /must have no credentialProvider.iamCredentialProvider/,
    );
  });
});

describe('a target that is called as its caller', () => {
  it('is a runtime of the platform, which judges each caller by his own rights', async () => {
    const { arn } = await deployAgent(platform, clients, {
      folder: join(import.meta.dirname, '../support/gateway-mcp-agent'),
      protocolConfiguration: { serverProtocol: 'MCP' },
    });
    const endpoint = `${platform.ready.endpoint}/runtimes/${encodeURIComponent(arn)}/invocations`;
    const inlinePayload = JSON.stringify({ tools: [{ name: 'greet', inputSchema: { type: 'object' } }] });
    const { id, url } = await gateway();
    const mcp = { mcpServer: { endpoint, mcpToolSchema: { inlinePayload } } };
    expect(await target(id, mcp, byCaller())).toMatchObject({ status: 'READY' });
    const may = (Action: string) => ({ Effect: 'Allow', Action: `bedrock-agentcore:${Action}`, Resource: '*' });
    const ada = await newUser(platform, 'ada', [may('InvokeGateway'), may('InvokeAgentRuntime')]);
    const bob = await newUser(platform, 'bob', [may('InvokeGateway')]);
    const greet = async (credentials: typeof ada): Promise<string> => {
      const client = await connectMcp(url, { fetch: signingFetch(platform, credentials) });
      const result = await client.callTool({ name: 'behind___greet', arguments: {} });
      await client.close();
      return textOf(result);
    };
    const headers = await greet(ada);
    expect(headers).toContain('"host"');
    expect(headers).not.toMatch(/authorization|x-amz-security-token/i);
    expect(await greet(bob)).toContain('403');
    // Once more: what was made for one is not another's.
    expect(await greet(ada)).toContain('"host"');
    expect(await greet(bob)).toContain('403');
    // Its gateway goes on taking signed requests, or it is refused by name.
    const name = `signed-${named}`;
    const change = { gatewayIdentifier: id, name, roleArn, authorizerType: 'NONE' as const };
    await expect(clients.control.send(new UpdateGatewayCommand(change))).rejects.toThrow(
      /authorizerType.*target behind.*CALLER_IAM_CREDENTIALS/,
    );
  });

  it.each([
    [
      'no runtime of the platform',
      () => ({ mcpServer: { endpoint: `${foreignUrl}/mcp`, listingMode: 'DYNAMIC' as const } }),
      /only where it is a runtime/,
    ],
    [
      'another place of the platform',
      () => ({ mcpServer: { endpoint: `${platform.ready.endpoint}/gateways/x/mcp`, listingMode: 'DYNAMIC' as const } }),
      /only where it is a runtime/,
    ],
    [
      'asked for its tools by itself',
      () => ({ mcpServer: { endpoint: `${platform.ready.endpoint}/runtimes/a/invocations` } }),
      /has no user then/,
    ],
    [
      'of a document, which says what is called',
      () => objectsAt(foreignUrl),
      /CALLER_IAM_CREDENTIALS are not for this kind/,
    ],
  ])('is not %s', async (_what, mcp, message) => {
    const { id } = await gateway();
    await expect(target(id, mcp(), byCaller())).rejects.toThrow(message);
  });

  it('is behind a gateway whose callers sign', async () => {
    const { id } = await gateway({ authorizerType: 'NONE' });
    const endpoint = `${platform.ready.endpoint}/runtimes/a/invocations`;
    await expect(target(id, { mcpServer: { endpoint, listingMode: 'DYNAMIC' } }, byCaller())).rejects.toThrow(
      /AWS_IAM/,
    );
  });
});

describe('a stage of a REST API', () => {
  const filters = [{ filterPath: '/pets/*', methods: ['GET' as const] }];
  const apiGateway = (more: object = {}) => ({
    apiGateway: { restApiId: 'a1b2c3', stage: 'prod', apiGatewayToolConfiguration: { toolFilters: filters }, ...more },
  });

  beforeAll(async () => {
    const responses = { 200: { description: 'ok' } };
    const petId = { name: 'petId', in: 'path', required: true, schema: { type: 'string' } };
    const proxy = { name: 'proxy', in: 'path', required: true, schema: { type: 'string' } };
    const key = { type: 'apiKey', in: 'header', name: 'x-api-key' };
    const exported = {
      openapi: '3.0.1',
      info: { title: 'pets', version: '2026-11-23T00:00:00Z' },
      servers: [{ url: `${foreignUrl}/{basePath}`, variables: { basePath: { default: 'prod' } } }],
      components: { securitySchemes: { key } },
      paths: {
        '/pets/{petId}': {
          get: { parameters: [petId], responses, security: [{ key: [] }] },
          delete: { operationId: 'removePet', parameters: [petId], responses },
          'x-amazon-apigateway-any-method': { responses },
        },
        '/pets/{proxy+}': { get: { operationId: 'proxied', parameters: [proxy], responses } },
      },
    };
    const Bucket = 'agentplatform-rest-apis';
    await clients.s3.send(new CreateBucketCommand({ Bucket }));
    await clients.s3.send(new PutObjectCommand({ Bucket, Key: 'a1b2c3/prod.json', Body: JSON.stringify(exported) }));
  });

  it('gives the tools that its filters take, by the names of its overrides, and is called by the role', async () => {
    const { id, url } = await gateway();
    const toolOverrides = [{ path: '/pets/{petId}', method: 'GET' as const, name: 'getPet', description: 'One pet' }];
    const apiGatewayToolConfiguration = { toolFilters: filters, toolOverrides };
    const made = await target(id, apiGateway({ apiGatewayToolConfiguration }), byRole());
    expect(made).toMatchObject({
      status: 'READY',
      targetConfiguration: { mcp: apiGateway({ apiGatewayToolConfiguration }) },
    });
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    const { tools } = await client.listTools();
    expect(tools.map(({ name, description }) => [name, description])).toEqual([['behind___getPet', 'One pet']]);
    answerWith = () => ({ status: 200, text: 'Rex' });
    expect(textOf(await client.callTool({ name: 'behind___getPet', arguments: { petId: '7' } }))).toBe('Rex');
    const { request } = seen.at(-1) ?? expect.unreachable();
    expect(request.url).toBe('/prod/pets/7');
    expect(await signerOf(request, { service: 'execute-api', region: platform.ready.region })).toBe('arn:role');
    await client.close();
  });

  it('says which filters and overrides mean nothing, and refuses by name what it cannot be', async () => {
    const { id } = await gateway();
    const apiGatewayToolConfiguration = { toolFilters: [{ filterPath: '/none', methods: ['GET' as const] }] };
    const idle = await target(id, apiGateway({ apiGatewayToolConfiguration }), byRole());
    expect(idle).toMatchObject({ status: 'FAILED', statusReasons: [expect.stringContaining('filter GET /none')] });
    await expect(target(id, apiGateway({ stage: 'beta' }), byRole())).rejects.toThrow(
      /is not there: .*a1b2c3\/beta.json/,
    );
    await expect(target(id, apiGateway({ restApiId: '../open' }), byRole())).rejects.toThrow(/restApiId has letters/);
    await expect(target(id, apiGateway(), [{ credentialProviderType: 'JWT_PASSTHROUGH' }])).rejects.toThrow(
      /JWT_PASSTHROUGH are not for this kind of target; it takes API_KEY, GATEWAY_IAM_ROLE/,
    );
    const credentials = await newUser(platform, 'blind', [
      { Effect: 'Allow', Action: ['bedrock-agentcore:*GatewayTarget', 'iam:PassRole'], Resource: '*' },
    ]);
    const own = clientsOf(platform, { credentials });
    await expect(target(id, apiGateway(), byRole(), own)).rejects.toThrow(/s3:GetObject/);
    own.close();
  });
});
