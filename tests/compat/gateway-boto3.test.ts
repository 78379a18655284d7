import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Backend,
  startSessionBackend,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import { sessionServer } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/stock.ts';
import { botoOf, python } from '../support/boto3.ts';
import { postMcp, signingFetch } from '../support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const DOCUMENT = JSON.stringify({
  openapi: '3.0.3',
  info: { title: 'Pets', version: '1' },
  servers: [{ url: 'https://pets.example.com' }],
  paths: {
    '/pets': { get: { operationId: 'listPets', summary: 'Lists pets', responses: { 200: { description: 'ok' } } } },
  },
});

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

let platform: TestPlatform;
let backend: Backend;
let tools = ['add'];
beforeAll(async () => {
  const inputSchema = { type: 'object' };
  backend = await startSessionBackend(() => sessionServer({ tools: tools.map((name) => ({ name, inputSchema })) }));
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
});
afterAll(async () => {
  await platform?.dispose();
  await backend?.close();
});

describe.skipIf(!python)('boto3, unmodified', () => {
  it('goes through every operation on gateways and targets, tags and resource policies', async () => {
    const boto = botoOf(platform);
    const one = async (operation: string, input: object) => {
      const [answer] = await boto.control([operation, input]);
      expect(answer?.error, operation).toBeUndefined();
      return answer?.output;
    };
    const settings = { name: 'boto', roleArn: platform.ready.defaultRoleArn, authorizerType: 'AWS_IAM' };
    const made = await one('CreateGateway', { ...settings, protocolType: 'MCP', tags: { team: 'a' } });
    expect(made).toMatchObject({ name: 'boto', status: 'READY', gatewayUrl: expect.stringMatching(/\/mcp$/) });
    const { gatewayId: gatewayIdentifier, gatewayArn: resourceArn } = made;
    expect(await one('GetGateway', { gatewayIdentifier })).toMatchObject({
      gatewayArn: resourceArn,
      protocolType: 'MCP',
    });
    const protocolConfiguration = { mcp: { instructions: 'Be kind.', supportedVersions: ['2025-11-25'] } };
    await one('UpdateGateway', { gatewayIdentifier, ...settings, protocolConfiguration });
    expect(await one('GetGateway', { gatewayIdentifier })).toMatchObject({ protocolConfiguration });
    expect((await one('ListGateways', {})).items).toMatchObject([{ gatewayId: gatewayIdentifier }]);

    const targetConfiguration = { mcp: { openApiSchema: { inlinePayload: DOCUMENT } } };
    const target = { gatewayIdentifier, name: 'pets', targetConfiguration };
    const { targetId } = await one('CreateGatewayTarget', target);
    const status = async () => (await one('GetGatewayTarget', { gatewayIdentifier, targetId })).status;
    await expect.poll(status, { timeout: 30_000 }).toBe('READY');
    await one('UpdateGatewayTarget', { ...target, targetId, description: 'all pets' });
    await expect.poll(status, { timeout: 30_000 }).toBe('READY');
    expect((await one('ListGatewayTargets', { gatewayIdentifier })).items).toMatchObject([
      { targetId, name: 'pets', description: 'all pets', targetType: 'OPEN_API_SCHEMA' },
    ]);
    const [refused] = await boto.control([
      'SynchronizeGatewayTargets',
      { gatewayIdentifier, targetIdList: [targetId] },
    ]);
    expect(refused?.error?.code).toBe('ValidationException');

    const mcpServer = { endpoint: backend.url };
    const server = { gatewayIdentifier, name: 'server', targetConfiguration: { mcp: { mcpServer } } };
    const { targetId: serverId } = await one('CreateGatewayTarget', server);
    const ofServer = { gatewayIdentifier, targetId: serverId };
    const serverStatus = async () => (await one('GetGatewayTarget', ofServer)).status;
    await expect.poll(serverStatus, { timeout: 30_000 }).toBe('READY');
    const before = (await one('GetGatewayTarget', ofServer)).lastSynchronizedAt;
    tools = ['add', 'sub'];
    const synchronizing = await one('SynchronizeGatewayTargets', { gatewayIdentifier, targetIdList: [serverId] });
    expect(synchronizing.targets).toMatchObject([{ targetId: serverId, status: 'SYNCHRONIZING' }]);
    await expect.poll(serverStatus, { timeout: 30_000 }).toBe('READY');
    expect((await one('GetGatewayTarget', ofServer)).lastSynchronizedAt.$date > before.$date).toBe(true);
    const listed = await postMcp(made.gatewayUrl, LIST, { fetch: signingFetch(platform) });
    expect(listed.json).toMatchObject({
      result: { tools: [{ name: 'pets___listPets' }, { name: 'server___add' }, { name: 'server___sub' }] },
    });
    await one('DeleteGatewayTarget', ofServer);

    expect(await one('ListTagsForResource', { resourceArn })).toMatchObject({ tags: { team: 'a' } });
    await one('TagResource', { resourceArn, tags: { stage: 'test', team: 'b' } });
    expect((await one('ListTagsForResource', { resourceArn })).tags).toEqual({ team: 'b', stage: 'test' });
    await one('UntagResource', { resourceArn, tagKeys: ['stage'] });
    expect((await one('ListTagsForResource', { resourceArn })).tags).toEqual({ team: 'b' });
    const statement = {
      Effect: 'Deny',
      Principal: '*',
      Action: 'bedrock-agentcore:InvokeGateway',
      Resource: resourceArn,
    };
    const policy = JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
    await one('PutResourcePolicy', { resourceArn, policy });
    expect(JSON.parse((await one('GetResourcePolicy', { resourceArn })).policy)).toMatchObject({
      Statement: [statement],
    });
    expect((await postMcp(made.gatewayUrl, LIST, { fetch: signingFetch(platform) })).status).toBe(403);
    await one('DeleteResourcePolicy', { resourceArn });
    const [none] = await boto.control(['GetResourcePolicy', { resourceArn }]);
    expect(none?.error?.code).toBe('ResourceNotFoundException');
    expect((await postMcp(made.gatewayUrl, LIST, { fetch: signingFetch(platform) })).status).toBe(200);

    expect(await one('DeleteGatewayTarget', { gatewayIdentifier, targetId })).toMatchObject({ status: 'DELETING' });
    expect(await one('DeleteGateway', { gatewayIdentifier })).toMatchObject({ status: 'DELETING' });
    const [gone] = await boto.control(['GetGateway', { gatewayIdentifier }]);
    expect(gone?.error?.code).toBe('ResourceNotFoundException');
  });
});
