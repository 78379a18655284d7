import { join } from 'node:path';
import {
  DeleteAgentRuntimeCommand,
  DeleteResourcePolicyCommand,
  GetResourcePolicyCommand,
  PutResourcePolicyCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let clients: Clients;

beforeAll(async () => {
  platform = await startTestPlatform();
  clients = clientsOf(platform);
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

const document = (statement: object): string => JSON.stringify({ Version: '2012-10-17', Statement: [statement] });

it('a resource policy forbids what the caller’s own policies allow, until it is removed, also over a restart', async () => {
  const { arn, id } = await deployAgent(platform, clients, {
    folder: join(import.meta.dirname, '../support/probe-agent'),
  });
  const session = sessionId('policy');
  expect(await invokeText(clients, arn, session, { do: 'read' })).toBe('nothing');
  const policy = document({
    Effect: 'Deny',
    Principal: '*',
    Action: 'bedrock-agentcore:InvokeAgentRuntime',
    Resource: arn,
  });
  expect((await clients.control.send(new PutResourcePolicyCommand({ resourceArn: arn, policy }))).policy).toBe(policy);
  await expect(invokeText(clients, arn, session, { do: 'read' })).rejects.toMatchObject({
    name: 'AccessDeniedException',
    message: expect.stringContaining('resource policy'),
  });
  expect((await clients.control.send(new GetResourcePolicyCommand({ resourceArn: arn }))).policy).toBe(policy);
  await clients.control.send(new DeleteResourcePolicyCommand({ resourceArn: arn }));
  expect(await invokeText(clients, arn, session, { do: 'read' })).toBe('nothing');
  await expect(clients.control.send(new GetResourcePolicyCommand({ resourceArn: arn }))).rejects.toMatchObject({
    name: 'ResourceNotFoundException',
  });
  await clients.control.send(new PutResourcePolicyCommand({ resourceArn: arn, policy }));
  await clients.control.send(new DeleteAgentRuntimeCommand({ agentRuntimeId: id }));
});

it('a policy that is no policy, or for no resource, is refused', async () => {
  const resourceArn = `arn:aws:bedrock-agentcore:us-east-1:${platform.ready.accountId}:runtime/nothing-0123456789`;
  const policy = document({ Effect: 'Allow', Principal: '*', Action: '*', Resource: '*' });
  await expect(clients.control.send(new PutResourcePolicyCommand({ resourceArn, policy }))).rejects.toMatchObject({
    name: 'ResourceNotFoundException',
  });
  await expect(clients.control.send(new PutResourcePolicyCommand({ resourceArn, policy: '{}' }))).rejects.toMatchObject(
    { name: 'ValidationException' },
  );
});
