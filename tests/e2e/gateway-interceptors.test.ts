import {
  CreateGatewayCommand,
  type CreateGatewayCommandInput,
  type GatewayInterceptorConfiguration,
  GetGatewayCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import type { LambdaClient } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Backend,
  startModernBackend,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import { modernServer } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/stock.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { lambdaClient, newFunction } from '../support/functions.ts';
import { addMcpServer, connectMcp, postMcp, signingFetch } from '../support/gateway.ts';
import { newRole } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** Lets nobody call `secret`, hides it in lists, adds a header to calls, and fails when it is asked to. */
const SOURCE = `
export const handler = async ({ mcp: { gatewayRequest, gatewayResponse } }) => {
  const answer = (mcp) => ({ interceptorOutputVersion: '1.0', mcp });
  const { body, headers } = gatewayRequest;
  if (gatewayResponse) {
    const { result } = gatewayResponse.body;
    if (result?.tools) result.tools = result.tools.filter(({ name }) => !name.endsWith('secret'));
    return answer({ transformedGatewayResponse: { ...gatewayResponse, headers: { 'X-Seen': 'yes' } } });
  }
  const name = body.params?.name ?? '';
  if (name.endsWith('broken')) throw new Error('broken');
  if (name.endsWith('secret'))
    return answer({ transformedGatewayResponse: { statusCode: 200, body: { jsonrpc: '2.0', id: body.id, error: { code: -32001, message: 'not yours' } } } });
  return answer({ transformedGatewayRequest: { body, headers: { 'X-Tenant': String(headers?.Authorization !== undefined) } } });
};
`;

let platform: TestPlatform;
let clients: Clients;
let lambda: LambdaClient;
let backend: Backend;
let url: string;
let own: typeof fetch;

const define = (more: Partial<CreateGatewayCommandInput>): CreateGatewayCommandInput => ({
  ...{ name: 'intercepted', roleArn: undefined, protocolType: 'MCP', authorizerType: 'AWS_IAM', ...more },
});

/** A signed request, as clients send it that know a member which the SDK does not. */
async function postSigned(address: string, method: string, body: object): Promise<{ status: number; body: string }> {
  const headers = { 'content-type': 'application/json' };
  const answer = await own(address, { method, headers, body: JSON.stringify(body) });
  return { status: answer.status, body: await answer.text() };
}

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  lambda = lambdaClient(platform);
  own = signingFetch(platform);
  const arn = await newFunction(lambda, platform, 'interceptor', { files: { 'index.mjs': SOURCE } });
  const roleArn = await newRole(platform, 'intercepted', [
    { Effect: 'Allow', Action: 'lambda:InvokeFunction', Resource: arn },
  ]);
  const interceptorConfigurations: GatewayInterceptorConfiguration[] = [
    {
      interceptor: { lambda: { arn } },
      interceptionPoints: ['REQUEST', 'RESPONSE'],
      inputConfiguration: { passRequestHeaders: true },
    },
  ];
  const { gatewayId = '', gatewayUrl = '' } = await clients.control.send(
    new CreateGatewayCommand(define({ roleArn, interceptorConfigurations })),
  );
  url = gatewayUrl;
  const kept = await clients.control.send(new GetGatewayCommand({ gatewayIdentifier: gatewayId }));
  expect(kept.interceptorConfigurations).toEqual(interceptorConfigurations);
  const object = { type: 'object' };
  const tools = ['open', 'secret', 'broken'].map((name) => ({ name, description: name, inputSchema: object }));
  const run = async () => ({ content: [{ type: 'text', text: 'done' }] });
  backend = await startModernBackend(() => modernServer({ tools, run }));
  const metadataConfiguration = { allowedRequestHeaders: ['X-Tenant'] };
  await addMcpServer(clients, gatewayId, 'backend', { endpoint: backend.url }, { metadataConfiguration });
  await expect(
    clients.control.send(
      new CreateGatewayCommand(
        define({
          ...{ name: 'twice', roleArn },
          interceptorConfigurations: [...interceptorConfigurations, ...interceptorConfigurations],
        }),
      ),
    ),
  ).rejects.toMatchObject({ name: 'ValidationException' });
});

afterAll(async () => {
  clients?.close();
  lambda?.destroy();
  await platform?.dispose();
  await backend?.close();
});

describe.each(['auto', 'legacy'] as const)('a function that intercepts, for a client in the mode %s', (mode) => {
  it('adds to what targets are sent, hides tools, answers itself, and ends what it fails at', async () => {
    const client = await connectMcp(url, { mode, fetch: own });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['backend___broken', 'backend___open']);
    backend.requests.length = 0;
    expect(await client.callTool({ name: 'backend___open', arguments: {} })).toMatchObject({
      content: [{ text: 'done' }],
    });
    expect(backend.requests.at(-1)?.headers['x-tenant']).toBe('true');
    backend.requests.length = 0;
    await expect(client.callTool({ name: 'backend___secret', arguments: {} })).rejects.toMatchObject({ code: -32001 });
    await expect(client.callTool({ name: 'backend___broken', arguments: {} })).rejects.toThrow();
    expect(backend.requests).toEqual([]);
    await client.close();
  });
});

it('a custom transformation is asked for both ways, is shown, and is not for HTTP', async () => {
  const arn = await newFunction(lambda, platform, 'transform', { files: { 'index.mjs': SOURCE } });
  const roleArn = await newRole(platform, 'transformed', [
    { Effect: 'Allow', Action: 'lambda:InvokeFunction', Resource: arn },
  ]);
  const name = 'transformed';
  const { gatewayId = '', gatewayUrl = '' } = await clients.control.send(
    new CreateGatewayCommand(define({ name, roleArn })),
  );
  await addMcpServer(clients, gatewayId, 'backend', { endpoint: backend.url });
  const client = await connectMcp(gatewayUrl, { fetch: own });
  const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
  expect(await names()).toContain('backend___secret');
  const update = (customTransformConfiguration: object) =>
    postSigned(`${platform.ready.endpoint}/gateways/${gatewayId}/`, 'PUT', {
      ...{ name, roleArn, protocolType: 'MCP', authorizerType: 'AWS_IAM', customTransformConfiguration },
    });
  expect(await update({})).toMatchObject({
    status: 400,
    body: expect.stringContaining('customTransformConfiguration'),
  });
  const lambdaOf = (lambdaArn: string) => ({ lambda: { arn: lambdaArn } });
  expect(await update(lambdaOf(arn))).toMatchObject({ status: 202, body: expect.stringContaining(arn) });
  expect(await names()).toEqual(['backend___broken', 'backend___open']);
  await expect(client.callTool({ name: 'backend___secret', arguments: {} })).rejects.toMatchObject({ code: -32001 });
  await client.close();
});

it('one message at a time is intercepted', async () => {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  const answer = await postMcp(url, ping, { fetch: own });
  expect([answer.status, answer.headers.get('x-seen')]).toEqual([200, 'yes']);
  expect(await postMcp(url, [ping, ping], { fetch: own })).toMatchObject({
    status: 400,
    json: { error: { code: -32600 } },
  });
});

describe('headers of a target’s answer', () => {
  it.each(['newer', 'older'])('reach the client where the list of the target names them: %s', async (era) => {
    const roleArn = platform.ready.defaultRoleArn;
    const { gatewayId = '', gatewayUrl = '' } = await clients.control.send(
      new CreateGatewayCommand(define({ name: `headers-${era}`, roleArn })),
    );
    const stock = { tools: [{ name: 'a', description: 'a', inputSchema: { type: 'object' } }] };
    const server = await startModernBackend(() => modernServer(stock), 'stateless', { 'x-quota': '7', 'x-other': '8' });
    const metadataConfiguration = { allowedResponseHeaders: ['X-Quota'] };
    await addMcpServer(clients, gatewayId, 'api', { endpoint: server.url }, { metadataConfiguration });
    const seen: Headers[] = [];
    const watched: typeof fetch = async (input, init) => {
      const answer = await own(input, init);
      seen.push(answer.headers);
      return answer;
    };
    const client = await connectMcp(gatewayUrl, { mode: era === 'newer' ? 'auto' : 'legacy', fetch: watched });
    await client.callTool({ name: 'api___a', arguments: {} });
    expect([seen.at(-1)?.get('x-quota'), seen.at(-1)?.get('x-other')]).toEqual(['7', null]);
    await client.close();
    await server.close();
  });
});
