import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { botoOf, python } from '../support/boto3.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const DOCUMENT = JSON.stringify({
  openapi: '3.0.3',
  info: { title: 'Pets', version: '1' },
  servers: [{ url: 'https://pets.example.com' }],
  paths: {
    '/pets': { get: { operationId: 'listPets', summary: 'Lists pets', responses: { 200: { description: 'ok' } } } },
  },
});

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
});
afterAll(() => platform?.dispose());

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

    expect(await one('ListTagsForResource', { resourceArn })).toMatchObject({ tags: { team: 'a' } });
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

    expect(await one('DeleteGatewayTarget', { gatewayIdentifier, targetId })).toMatchObject({ status: 'DELETING' });
    expect(await one('DeleteGateway', { gatewayIdentifier })).toMatchObject({ status: 'DELETING' });
    const [gone] = await boto.control(['GetGateway', { gatewayIdentifier }]);
    expect(gone?.error?.code).toBe('ResourceNotFoundException');
  });
});
