import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { CreateGatewayCommand, type McpTargetConfiguration } from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { selfSigned } from '../support/certificates.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

let platform: TestPlatform;
let clients: Clients;
let backend: Server;
let url: string;

beforeAll(async () => {
  const [ours, leaf] = await Promise.all([
    selfSigned('subjectAltName=IP:127.0.0.1'),
    selfSigned('basicConstraints=critical,CA:FALSE'),
  ]);
  // An API and an MCP server behind one certificate that nobody knows.
  backend = createServer(ours, async (request, response) => {
    if (request.method === 'GET') return response.end('of the API');
    const { id, method, params } = (await json(request)) as {
      id?: number;
      method: string;
      params?: { protocolVersion: string };
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
      'tools/list': { tools: [{ name: 'greet', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [{ type: 'text', text: 'of the server' }] },
    };
    const result = results[method];
    const error = { code: -32601, message: 'Method not found' };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...(result ? { result } : { error }) }));
  });
  await new Promise<void>((done) => backend.listen(0, '127.0.0.1', done));
  url = `https://127.0.0.1:${(backend.address() as AddressInfo).port}`;
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  const Bucket = 'authorities';
  await clients.s3.send(new CreateBucketCommand({ Bucket }));
  for (const [Key, Body] of Object.entries({ 'ours.pem': ours.cert, 'leaf.pem': leaf.cert }))
    await clients.s3.send(new PutObjectCommand({ Bucket, Key, Body }));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  backend?.closeAllConnections();
  backend?.close();
});

const at = (file: string): object[] => [{ s3: { uri: `s3://authorities/${file}` } }];

it('is called where its certificate is of the authority that the target names, and nowhere else', async () => {
  const { gatewayId = '', gatewayUrl = '' } = await clients.control.send(
    new CreateGatewayCommand({ name: 'certified', roleArn: platform.ready.defaultRoleArn, authorizerType: 'AWS_IAM' }),
  );
  const api: McpTargetConfiguration = {
    openApiSchema: {
      inlinePayload: JSON.stringify({
        openapi: '3.0.3',
        info: { title: 'x', version: '1' },
        servers: [{ url }],
        paths: { '/things': { get: { operationId: 'things', responses: { 200: { description: 'ok' } } } } },
      }),
    },
  };
  const server: McpTargetConfiguration = { mcpServer: { endpoint: `${url}/mcp` } };
  const path = `/gateways/${gatewayId}/targets/`;
  // The SDK is older than the member.
  const add = async (name: string, mcp: McpTargetConfiguration, certificateConfigurations?: object[]) => {
    const content = {
      name,
      targetConfiguration: { mcp },
      ...(certificateConfigurations && { certificateConfigurations }),
    };
    const answer = await signedFetch(platform, { method: 'POST', path, content });
    const made = (await answer.json()) as { targetId: string; message?: string; certificateConfigurations?: object[] };
    if (!answer.ok) throw new Error(made.message);
    const { status } = await settledTarget(clients, gatewayId, made.targetId);
    return { ...made, status };
  };
  const made = await add('api', api, at('ours.pem'));
  expect(made).toMatchObject({ status: 'READY', certificateConfigurations: at('ours.pem') });
  expect(JSON.stringify(made)).not.toContain('BEGIN CERTIFICATE');
  expect(await add('server', server, at('ours.pem'))).toMatchObject({ status: 'READY' });
  await add('stranger', api);
  expect(await add('other', server)).toMatchObject({ status: 'FAILED' });
  await expect(add('leaf', api, at('leaf.pem'))).rejects.toThrow(/certificateConfigurations.*authority/);
  await expect(add('gone', api, at('gone.pem'))).rejects.toThrow(/certificateConfigurations.*is not there/);
  const client = await connectMcp(gatewayUrl, { fetch: signingFetch(platform) });
  const call = (name: string) => client.callTool({ name, arguments: {} });
  expect(JSON.stringify((await call('api___things')).content)).toContain('of the API');
  expect(await call('server___greet')).toMatchObject({ content: [{ text: 'of the server' }] });
  expect(await call('stranger___things')).toMatchObject({ isError: true });
  await client.close();
});
