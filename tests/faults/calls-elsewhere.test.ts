import { CreateGatewayCommand, CreateGatewayTargetCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { startCodeSession } from '../support/code-session.ts';
import { connectMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { newRole } from '../support/iam.ts';
import type { TestPlatform } from '../support/platform-process.ts';
import { ServerGroup } from '../support/server-group.ts';

let servers: ServerGroup;
let a: TestPlatform;
let b: TestPlatform;
let clients: Clients;
let path: string;

beforeAll(async () => {
  servers = await ServerGroup.open({
    sandbox: ['--sandbox', 'oci'],
    leaseSeconds: 60,
    env: { AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim', AGENTPLATFORM_CODE_INTERPRETER_WARM_SESSIONS: '0' },
  });
  a = await servers.start('a');
  b = await servers.start('b');
  clients = clientsOf(a);
  // The image of the sessions below.
  await startCodeSession(clients).then((session) => session.stop());
  const Action = ['InvokeCodeInterpreter', 'StopCodeInterpreterSession'].map((name) => `bedrock-agentcore:${name}`);
  const roleArn = await newRole(a, 'of-calls', [{ Effect: 'Allow', Action, Resource: '*' }]);
  const { gatewayId = '', gatewayUrl = '' } = await clients.control.send(
    new CreateGatewayCommand({ name: 'calls', roleArn, authorizerType: 'AWS_IAM' }),
  );
  path = new URL(gatewayUrl).pathname;
  const { targetId = '' } = await clients.control.send(
    new CreateGatewayTargetCommand({
      ...{ gatewayIdentifier: gatewayId, name: 'own' },
      targetConfiguration: { mcp: { connector: { source: { connectorId: 'agentcore-code-interpreter' } } } },
      credentialProviderConfigurations: [{ credentialProviderType: 'GATEWAY_IAM_ROLE' }],
    }),
  );
  expect(await settledTarget(clients, gatewayId, targetId)).toMatchObject({ status: 'READY' });
}, 400_000);
afterAll(async () => {
  clients?.close();
  await servers?.close();
});

it('a tool of a gateway goes on with a session that another server has, and ends it', {
  timeout: 180_000,
}, async () => {
  const connect = ({ ready }: TestPlatform) =>
    connectMcp(`${ready.endpoint}${path}`, { fetch: signingFetch({ ready, credentials: a.credentials }) });
  const [throughA, throughB] = [await connect(a), await connect(b)];
  const run = (client: typeof throughA, code: string, more: object = {}) =>
    client.callTool(
      { name: 'own___executeCode', arguments: { code, language: 'python', ...more } },
      { timeout: 120_000 },
    );
  const first = await run(throughA, 'x = 6 * 7\nprint(x)');
  expect(first.structuredContent, JSON.stringify(first)).toMatchObject({ stdout: expect.stringContaining('42') });
  const { sessionId } = first.structuredContent as { sessionId: string };
  const again = await run(throughB, 'print(x + 1)', { sessionId });
  expect(again.structuredContent, JSON.stringify(again)).toMatchObject({
    sessionId,
    stdout: expect.stringContaining('43'),
  });
  const wrong = await run(throughB, '1 / 0', { sessionId });
  expect([wrong.isError, JSON.stringify(wrong)]).toEqual([true, expect.stringContaining('ZeroDivisionError')]);
  const stopped = await throughB.callTool({ name: 'own___stopSession', arguments: { sessionId } });
  expect(stopped.isError, JSON.stringify(stopped)).not.toBe(true);
  // Where it was, it is gone.
  expect((await run(throughA, 'print(x)', { sessionId })).isError).toBe(true);
  await throughA.close();
  await throughB.close();
});
