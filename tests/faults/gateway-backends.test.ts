import { once } from 'node:events';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { CreateGatewayCommand, CreateGatewayTargetCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** More than one target has under way at once (64). */
const CALLS = 80;
const UNDER_WAY = 64;

let platform: TestPlatform;
let clients: Clients;
const servers: Server[] = [];
/** Of the server that answers nobody. */
const waiting: ServerResponse[] = [];

async function listening(server: Server): Promise<string> {
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  for (const server of servers) server.close();
});

it('servers that are dead, hang or answer garbage cost the calls of their own targets, and of no other', async () => {
  const gone = createServer();
  const dead = await listening(gone);
  gone.close();
  const garbage = createServer((socket) => socket.on('error', () => undefined).end('no HTTP at all\r\n\r\n'));
  const hanging = createHttpServer((_req, res) => void waiting.push(res));
  const sound = createHttpServer((_req, res) =>
    res.setHeader('content-type', 'application/json').end('{"sound":true}'),
  );
  const { gatewayId: gatewayIdentifier = '', gatewayUrl = '' } = await clients.control.send(
    new CreateGatewayCommand({ name: 'four', roleArn: platform.ready.defaultRoleArn, authorizerType: 'AWS_IAM' }),
  );
  const add = async (name: string, url: string): Promise<void> => {
    const paths = { '/ask': { get: { operationId: 'ask', responses: { 200: { description: 'ok' } } } } };
    const document = { openapi: '3.0.3', info: { title: name, version: '1' }, servers: [{ url }], paths };
    const targetConfiguration = { mcp: { openApiSchema: { inlinePayload: JSON.stringify(document) } } };
    const { targetId = '' } = await clients.control.send(
      new CreateGatewayTargetCommand({ gatewayIdentifier, name, targetConfiguration }),
    );
    expect(await settledTarget(clients, gatewayIdentifier, targetId)).toMatchObject({ status: 'READY' });
  };
  await add('dead', dead);
  await add('garbage', await listening(garbage));
  await add('hanging', await listening(hanging));
  await add('sound', await listening(sound));

  const client = await connectMcp(gatewayUrl, { fetch: signingFetch(platform), mode: 'auto' });
  const call = (target: string) => client.callTool({ name: `${target}___ask`, arguments: {} });
  const many = (target: string, count = CALLS) => Array.from({ length: count }, () => call(target));
  let answered = 0;
  const ofHanging = many('hanging').map((one) => one.finally(() => answered++));
  const broken = [...many('dead'), ...many('garbage')];
  const sounds = await Promise.all(many('sound', UNDER_WAY / 2));
  for (const result of sounds) expect(result).toMatchObject({ structuredContent: { sound: true } });
  for (const result of await Promise.all(broken)) expect(result.isError).toBe(true);
  // What is more than its share is refused at once; all others still wait, and the sound one is still there.
  await expect.poll(() => answered, { timeout: 30_000 }).toBe(CALLS - UNDER_WAY);
  await expect.poll(() => waiting.length, { timeout: 30_000 }).toBe(UNDER_WAY);
  for (const result of await Promise.all(many('sound', UNDER_WAY / 2)))
    expect(result).toMatchObject({ structuredContent: { sound: true } });
  expect(answered).toBe(CALLS - UNDER_WAY);
  for (const response of waiting) response.end('late');
  const results = await Promise.all(ofHanging);
  expect(results.filter(({ isError }) => isError)).toHaveLength(CALLS - UNDER_WAY);
  await client.close();
});
