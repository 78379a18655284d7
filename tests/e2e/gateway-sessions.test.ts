import { CreateGatewayCommand, UpdateGatewayCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  type Backend,
  startSessionBackend,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import { sessionServer } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/stock.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { addMcpServer, connectMcp, postMcp, signingFetch } from '../support/gateway.ts';
import { newRole, newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { send, signed } from '../support/session-endpoint.ts';

const ALL = [{ Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' }];
const INITIALIZE = {
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
};
const PING = { jsonrpc: '2.0', id: 2, method: 'ping' };
const SESSION = 'mcp-session-id';

let platform: TestPlatform;
let clients: Clients;
let roleArn: string;
let backend: Backend & { sessions: Map<string, unknown> };
let gatewayId: string;
let url: string;
let own: typeof fetch;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  own = signingFetch(platform);
  roleArn = await newRole(platform, 'sessions', ALL);
  const object = { type: 'object' };
  backend = await startSessionBackend(() => sessionServer({ tools: [{ name: 'add', inputSchema: object }] }));
  ({ gatewayId = '', gatewayUrl: url = '' } = await clients.control.send(new CreateGatewayCommand(definition)));
  await addMcpServer(clients, gatewayId, 'first', { endpoint: backend.url });
});
const definition = {
  ...({ name: 'sessions', protocolType: 'MCP', authorizerType: 'AWS_IAM' } as const),
  get roleArn() {
    return roleArn;
  },
  protocolConfiguration: { mcp: { sessionConfiguration: { sessionTimeoutInSeconds: 900 } } },
};

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await backend?.close();
});

async function begin(): Promise<string> {
  const answer = await postMcp(url, INITIALIZE, { fetch: own });
  expect(answer.status).toBe(200);
  return answer.headers.get(SESSION) ?? '';
}

it('a session begins with initialize, ends by DELETE, and is its caller’s alone', async () => {
  const id = await begin();
  expect(id).toMatch(/^[\x21-\x7e]+$/);
  expect((await postMcp(url, PING, { fetch: own, [SESSION]: id })).json).toMatchObject({ result: {} });
  const mallory = signingFetch(platform, await newUser(platform, 'mallory', ALL));
  const theirs = await postMcp(url, PING, { fetch: mallory, [SESSION]: id });
  expect(theirs).toMatchObject({ status: 404, json: { error: { message: 'Session not found' } } });
  expect((await postMcp(url, INITIALIZE, { fetch: mallory })).status).toBe(200);
  expect((await postMcp(url, PING, { fetch: own })).status).toBe(400);
  expect((await own(url, { method: 'DELETE', headers: { [SESSION]: id } })).status).toBe(200);
  expect((await postMcp(url, PING, { fetch: own, [SESSION]: id })).status).toBe(404);
});

it('who is given a presigned request enters no session of its signer', async () => {
  const id = await begin();
  const body = JSON.stringify(PING);
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const presigned = async (sent: object): Promise<string> =>
    (await signed(platform, url, { method: 'POST', headers: { ...headers, ...sent }, body }, true)).url;
  const added = { ...headers, [SESSION]: id };
  const refused = await send(await presigned({}), { method: 'POST', headers: added, body });
  expect(refused).toMatchObject({ status: 403, text: expect.stringContaining('must be signed') });
  const allowed = await send(await presigned({ [SESSION]: id }), { method: 'POST', headers: added, body });
  expect(allowed.status).toBe(200);
});

it('clients are told of changed tools, and servers keep a session for each of theirs', async () => {
  const client = await connectMcp(url, { mode: 'legacy', fetch: own });
  const changed = new Promise<void>((resolve) =>
    client.setNotificationHandler('notifications/tools/list_changed', () => resolve()),
  );
  await client.callTool({ name: 'first___add', arguments: {} });
  const ofClient = [...backend.sessions.keys()];
  await addMcpServer(clients, gatewayId, 'second', { endpoint: backend.url });
  await changed;
  const names = async (): Promise<string[]> => (await client.listTools()).tools.map(({ name }) => name);
  await expect.poll(names, { timeout: 20_000 }).toContain('second___add');
  await client.callTool({ name: 'first___add', arguments: {} });
  expect([...backend.sessions.keys()]).toEqual(expect.arrayContaining(ofClient));
  await client.close();
});

it('without sessionConfiguration there are none any more', async () => {
  const id = await begin();
  const stream = await own(url, { headers: { accept: 'text/event-stream', [SESSION]: id } });
  expect(stream.status).toBe(200);
  await clients.control.send(
    new UpdateGatewayCommand({ ...definition, gatewayIdentifier: gatewayId, protocolConfiguration: { mcp: {} } }),
  );
  // The next request finds the gateway as it is now.
  await expect
    .poll(async () => (await postMcp(url, INITIALIZE, { fetch: own })).headers.get(SESSION), { timeout: 20_000 })
    .toBeNull();
  expect((await postMcp(url, PING, { fetch: own, [SESSION]: id })).status).toBe(200);
  await stream.text();
});

it('a batch is taken where the version has batches', async () => {
  const { gatewayUrl = '' } = await clients.control.send(
    new CreateGatewayCommand({ ...definition, name: 'batches', protocolConfiguration: { mcp: {} } }),
  );
  const batch = Array.from({ length: 5 }, (_, id) => ({ ...PING, id }));
  expect((await postMcp(gatewayUrl, batch, { fetch: own })).status).toBe(200);
  const later = await postMcp(gatewayUrl, batch, { fetch: own, 'mcp-protocol-version': '2025-06-18' });
  expect(later).toMatchObject({ status: 400, json: { error: { code: -32600 } } });
});
