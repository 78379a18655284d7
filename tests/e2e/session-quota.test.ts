import { join } from 'node:path';
import { StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let clients: Clients;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--quotas-sessions-per-account', '1'] });
  clients = clientsOf(platform);
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

it('refuses a session beyond the quota with the class that the model has for it, and says what to do', async () => {
  const { arn } = await deployAgent(platform, clients, { folder: join(import.meta.dirname, '../support/probe-agent') });
  const [one, two] = [sessionId('one'), sessionId('two')];
  await invokeText(clients, arn, one, { do: 'count' });
  const quota = {
    name: 'ServiceQuotaExceededException',
    message: expect.stringMatching(/1 live sessions.*StopRuntimeSession.*quotas.sessionsPerAccount/),
    $metadata: expect.objectContaining({ httpStatusCode: 402 }),
  };
  await expect(invokeText(clients, arn, two, { do: 'count' })).rejects.toMatchObject(quota);
  // The one that lives goes on; its end makes room.
  expect(JSON.parse(await invokeText(clients, arn, one, { do: 'count' })).count).toBe(2);
  await clients.data.send(new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: one }));
  expect(JSON.parse(await invokeText(clients, arn, two, { do: 'count' })).count).toBe(1);
});
