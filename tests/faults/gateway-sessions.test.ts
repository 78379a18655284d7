import { CreateGatewayCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { clientsOf } from '../support/clients.ts';
import { postMcp, signingFetch } from '../support/gateway.ts';
import { newRole } from '../support/iam.ts';
import type { TestPlatform } from '../support/platform-process.ts';
import { ServerGroup } from '../support/server-group.ts';

const INITIALIZE = {
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};
const PING = { jsonrpc: '2.0', id: 2, method: 'ping' };
const SESSION = 'mcp-session-id';

let servers: ServerGroup;
let a: TestPlatform;
let b: TestPlatform;
let path: string;

beforeAll(async () => {
  servers = await ServerGroup.open({ sandbox: ['--sandbox', 'process'], leaseSeconds: 8 });
  a = await servers.start('a');
  b = await servers.start('b');
  const allowed = [{ Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' }];
  const roleArn = await newRole(a, 'sessions', allowed);
  const clients = clientsOf(a);
  const { gatewayUrl = '' } = await clients.control.send(
    new CreateGatewayCommand({
      ...{ name: 'sessions', roleArn, protocolType: 'MCP', authorizerType: 'AWS_IAM' },
      protocolConfiguration: { mcp: { sessionConfiguration: {} } },
    }),
  );
  clients.close();
  path = new URL(gatewayUrl).pathname;
});
afterAll(() => servers?.close());

const at = (platform: TestPlatform, body: object, more: object = {}) =>
  postMcp(`${platform.ready.endpoint}${path}`, body, {
    fetch: signingFetch({ ready: platform.ready, credentials: a.credentials }),
    ...more,
  });

it('a session of one server is entered through the other, and ends with its server', async () => {
  const opened = await at(b, INITIALIZE);
  const named = { [SESSION]: opened.headers.get(SESSION) };
  expect((await at(b, PING, named)).json).toMatchObject({ result: {} });
  // Servers know of each other by their beats.
  await expect.poll(async () => (await at(a, PING, named)).json, { timeout: 30_000 }).toMatchObject({ result: {} });
  await b.end('SIGKILL');
  // The client begins a new one.
  await expect.poll(async () => (await at(a, PING, named)).status, { timeout: 60_000 }).toBe(404);
  expect((await at(a, INITIALIZE)).status).toBe(200);
}, 120_000);
