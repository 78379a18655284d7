import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  BatchPutGatewayRateLimitsCommand,
  CreateGatewayCommand,
  CreateGatewayRateLimitCommand,
  CreateGatewayTargetCommand,
  DeleteGatewayRateLimitCommand,
  GetGatewayRateLimitCommand,
  type LimitEntry,
  ListGatewayRateLimitsCommand,
  UpdateGatewayRateLimitCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectMcp, postMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { assumeNewRole, newUser } from '../support/iam.ts';
import type { TestPlatform } from '../support/platform-process.ts';
import { ServerGroup } from '../support/server-group.ts';

let servers: ServerGroup;
let a: TestPlatform;
let b: TestPlatform;
let clients: Clients;
let backend: Server;
let backendUrl: string;
/** Answered once they are told to. */
const waiting: (() => void)[] = [];

beforeAll(async () => {
  backend = createServer((req, res) => {
    const answer = (): void => void res.setHeader('content-type', 'application/json').end('{"said":"tea"}');
    if (req.url === '/slow') waiting.push(answer);
    else answer();
  });
  await new Promise<void>((done) => backend.listen(0, '127.0.0.1', done));
  backendUrl = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`;
  const sandbox = ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'];
  servers = await ServerGroup.open({ sandbox, leaseSeconds: 20 });
  [a, b] = [await servers.start('a'), await servers.start('b')];
  clients = clientsOf(a);
});
afterAll(async () => {
  for (const answer of waiting) answer();
  clients?.close();
  await servers?.close();
  backend?.close();
});

/** A gateway with the tools `api___quick` and `api___slow`; its address at both servers. */
async function gateway(): Promise<{ id: string; urls: [string, string] }> {
  const roleArn = a.ready.defaultRoleArn;
  const name = `limited-${crypto.randomUUID().slice(0, 8)}`;
  const { gatewayId: id = '', gatewayUrl = '' } = await clients.control.send(
    new CreateGatewayCommand({ name, roleArn, authorizerType: 'AWS_IAM', protocolType: 'MCP' }),
  );
  const get = (operationId: string) => ({ get: { operationId, responses: { 200: { description: 'ok' } } } });
  const paths = { '/quick': get('quick'), '/slow': get('slow') };
  const document = { openapi: '3.0.3', info: { title: 'T', version: '1' }, servers: [{ url: backendUrl }], paths };
  const { targetId = '' } = await clients.control.send(
    new CreateGatewayTargetCommand({
      ...{ gatewayIdentifier: id, name: 'api' },
      targetConfiguration: { mcp: { openApiSchema: { inlinePayload: JSON.stringify(document) } } },
    }),
  );
  expect(await settledTarget(clients, id, targetId)).toMatchObject({ status: 'READY' });
  const at = (platform: TestPlatform): string =>
    gatewayUrl.replace(new URL(gatewayUrl).origin, platform.ready.endpoint);
  return { id, urls: [at(a), at(b)] };
}

const limit = (gatewayIdentifier: string, dimensionKeys: string[], entries: LimitEntry[], rateLimitId?: string) =>
  clients.control.send(
    new CreateGatewayRateLimitCommand({
      gatewayIdentifier,
      dimensionKeys,
      entries,
      ...(rateLimitId && { rateLimitId }),
    }),
  );

let calls = 0;
const call = (url: string, name: string, own = signingFetch(a)) => {
  calls += 1;
  const body = { jsonrpc: '2.0', id: calls, method: 'tools/call', params: { name, arguments: {} } };
  return postMcp(url, body, { fetch: own, 'mcp-protocol-version': '2025-06-18' });
};

describe('the operations on rate limits', () => {
  it('make, show, change, list and delete them', async () => {
    const { id: gatewayIdentifier } = await gateway();
    const entries = [{ dimensions: { toolName: '*' }, requests: [{ rate: 5, period: 'second' as const }] }];
    const made = await limit(gatewayIdentifier, ['toolName'], entries, 'per-tool');
    expect(made).toMatchObject({ rateLimitId: 'per-tool', gatewayIdentifier, status: 'ACTIVE', entries });
    const one = { gatewayIdentifier, rateLimitId: 'per-tool' };
    const more = [{ dimensions: { toolName: 'api___quick' }, requests: [{ rate: 0, period: 'minute' as const }] }];
    await clients.control.send(new UpdateGatewayRateLimitCommand({ ...one, entries: more, description: 'none of it' }));
    expect(await clients.control.send(new GetGatewayRateLimitCommand(one))).toMatchObject({
      ...{ dimensionKeys: ['toolName'], entries: more, description: 'none of it' },
    });
    const batch = await clients.control.send(
      new BatchPutGatewayRateLimitsCommand({
        gatewayIdentifier,
        rateLimits: [
          { dimensionKeys: ['toolName'], entries },
          {
            dimensionKeys: ['targetName'],
            entries: [{ dimensions: { targetName: 'api' }, connections: [{ rate: 2, period: 'second' }] }],
          },
        ],
      }),
    );
    expect(batch.rateLimits).toMatchObject([{ rateLimitId: 'per-tool', entries }, { dimensionKeys: ['targetName'] }]);
    const first = await clients.control.send(new ListGatewayRateLimitsCommand({ gatewayIdentifier, maxResults: 1 }));
    const { nextToken } = first;
    const second = await clients.control.send(new ListGatewayRateLimitsCommand({ gatewayIdentifier, nextToken }));
    expect([first, second].flatMap(({ rateLimits }) => rateLimits?.map(({ dimensionKeys }) => dimensionKeys))).toEqual([
      ['toolName'],
      ['targetName'],
    ]);
    await clients.control.send(new DeleteGatewayRateLimitCommand(one));
    await expect(clients.control.send(new GetGatewayRateLimitCommand(one))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
  });

  it('refuse a second one of the same dimensions, and change nothing where one of a batch is refused', async () => {
    const { id: gatewayIdentifier } = await gateway();
    const entries = [{ dimensions: { targetName: '*' }, requests: [{ rate: 5, period: 'second' as const }] }];
    await limit(gatewayIdentifier, ['targetName'], entries);
    await expect(limit(gatewayIdentifier, ['targetName'], entries)).rejects.toMatchObject({
      name: 'ConflictException',
    });
    const changed = [{ dimensions: { targetName: '*' }, requests: [{ rate: 9, period: 'second' as const }] }];
    const batch = new BatchPutGatewayRateLimitsCommand({
      gatewayIdentifier,
      rateLimits: [
        { dimensionKeys: ['targetName'], entries: changed },
        { dimensionKeys: ['toolName'], entries: changed },
      ],
    });
    await expect(clients.control.send(batch)).rejects.toMatchObject({ name: 'ValidationException' });
    const { rateLimits } = await clients.control.send(new ListGatewayRateLimitsCommand({ gatewayIdentifier }));
    expect(rateLimits).toMatchObject([{ entries }]);
  });
});

describe('a rate limit', () => {
  it('holds with two servers, says when to come again, and counts nobody else’s requests', async () => {
    const { id, urls } = await gateway();
    // Before the limit: nothing holds a call up.
    for (const url of urls) expect((await call(url, 'api___quick')).status).toBe(200);
    const entries = [
      { dimensions: { toolName: 'api___quick' }, requests: [{ rate: 2, period: 'minute' as const }] },
      { dimensions: { toolName: 'api___none' }, requests: [{ rate: 0, period: 'minute' as const }] },
    ];
    await limit(id, ['toolName'], entries, 'quick');
    // The other server knows of it once its part of nothing is refused there.
    await expect.poll(async () => (await call(urls[1], 'api___none')).status, { timeout: 30_000 }).toBe(429);
    const minute = (): number => Math.floor(Date.now() / 60_000);
    for (;;) {
      const before = minute();
      const answers = [];
      for (const url of [...urls, ...urls, ...urls]) answers.push(await call(url, 'api___quick'));
      // Another minute began in between, with permits of its own.
      if (minute() !== before) continue;
      const statuses = answers.map(({ status }) => status);
      expect(statuses.slice(2)).toEqual([429, 429, 429, 429]);
      const [refusal] = answers.slice(-1);
      expect(refusal?.json).toMatchObject({ message: expect.stringContaining('The rate limit quick of this gateway') });
      const wait = Number(refusal?.headers.get('retry-after'));
      expect(wait).toBeGreaterThan(0);
      expect(wait).toBeLessThanOrEqual(60);
      break;
    }
    const client = await connectMcp(urls[0], { fetch: signingFetch(a) });
    expect((await client.listTools()).tools).toHaveLength(2);
    await client.close();
  });

  it('holds with two servers and a dead one: what that had drawn is lost, and nothing is let through twice', async () => {
    const { id, urls } = await gateway();
    await limit(
      id,
      ['toolName'],
      [
        { dimensions: { toolName: 'api___quick' }, requests: [{ rate: 100, period: 'minute' }] },
        { dimensions: { toolName: 'api___none' }, requests: [{ rate: 0, period: 'minute' }] },
      ],
    );
    const minute = (): number => Math.floor(Date.now() / 60_000);
    for (;;) {
      const dead = await servers.start('dead');
      const atDead = urls[0].replace(a.ready.endpoint, dead.ready.endpoint);
      for (const url of [urls[1], atDead])
        await expect.poll(async () => (await call(url, 'api___none')).status, { timeout: 30_000 }).toBe(429);
      const before = minute();
      const statuses: number[] = [];
      const ask = async (url: string) => void statuses.push((await call(url, 'api___quick')).status);
      for (const url of [urls[0], atDead, urls[1], atDead]) await ask(url);
      await dead.end('SIGKILL');
      for (const url of urls) {
        let refused = 0;
        while (refused === 0 && minute() === before) {
          const asked = statuses.length;
          await Promise.all(Array.from({ length: 8 }, () => ask(url)));
          refused = statuses.slice(asked).filter((status) => status === 429).length;
        }
      }
      // Another minute began in between, with permits of its own.
      if (minute() !== before) continue;
      // The dead one's portion was a twentieth, of which it had used two.
      expect(statuses.filter((status) => status === 200)).toHaveLength(97);
      expect(new Set(statuses)).toEqual(new Set([200, 429]));
      break;
    }
  });

  it('of nothing keeps one caller out, and no other', async () => {
    const { id, urls } = await gateway();
    const statement = { Effect: 'Allow', Action: 'bedrock-agentcore:InvokeGateway', Resource: '*' };
    const [ada, bob] = [await newUser(a, 'ada', [statement]), await newUser(a, 'bob', [statement])];
    const principal = `arn:aws:iam::${a.ready.accountId}:user/ada`;
    const none = [{ rate: 0, period: 'second' as const }];
    const key = '$.context.iam.principal';
    await limit(id, [key], [{ dimensions: { [key]: principal }, requests: none }]);
    expect((await call(urls[1], 'api___quick', signingFetch(b, ada))).status).toBe(429);
    expect((await call(urls[1], 'api___quick', signingFetch(b, bob))).status).toBe(200);
  });

  it('counts by who is behind the session of a role', async () => {
    const { id, urls } = await gateway();
    const statement = { Effect: 'Allow', Action: 'bedrock-agentcore:InvokeGateway', Resource: '*' };
    const [ada, bob] = [
      await assumeNewRole(a, 'shared-by-ada', [statement], 'ada@example.com'),
      await assumeNewRole(a, 'shared-by-bob', [statement], 'bob@example.com'),
    ];
    const key = '$.context.iam.sourceIdentity';
    await limit(id, [key], [{ dimensions: { [key]: 'ada@example.com' }, requests: [{ rate: 0, period: 'second' }] }]);
    expect((await call(urls[0], 'api___quick', signingFetch(a, ada))).status).toBe(429);
    expect((await call(urls[0], 'api___quick', signingFetch(a, bob))).status).toBe(200);
    expect((await call(urls[0], 'api___quick')).status).toBe(200);
  });

  it('of connections lets the next one in when one has ended', async () => {
    const { id, urls } = await gateway();
    const connections = [{ rate: 1, period: 'second' as const }];
    await limit(id, ['toolName'], [{ dimensions: { toolName: 'api___slow' }, connections }]);
    const first = call(urls[0], 'api___slow');
    await expect.poll(() => waiting.length, { timeout: 30_000 }).toBe(1);
    expect((await call(urls[0], 'api___slow')).status).toBe(429);
    expect((await call(urls[0], 'api___quick')).status).toBe(200);
    waiting.shift()?.();
    expect((await first).status).toBe(200);
    const again = call(urls[0], 'api___slow');
    await expect.poll(() => waiting.length, { timeout: 30_000 }).toBe(1);
    waiting.shift()?.();
    expect((await again).status).toBe(200);
  });
});
