import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ThrottlingException } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let clients: Clients;

beforeAll(async () => {
  platform = await startTestPlatform({
    args: ['--sandbox-max-concurrent-starts', '1', '--sandbox-max-queued-starts', '1'],
  });
  clients = clientsOf(platform);
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

/** Calls again, at most for a minute, for as long as too many sessions start. */
async function untilStarted(arn: string, session: string): Promise<Record<string, unknown>> {
  for (const deadline = Date.now() + 60_000; ; await sleep(100)) {
    try {
      return await invokeJson(clients, arn, session, { do: 'count' });
    } catch (error) {
      if (!(error instanceof ThrottlingException) || Date.now() > deadline) throw error;
    }
  }
}

/** The sum of all samples whose line begins so. */
async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${platform.ready.endpoint}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(name));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

it('bounds the starts at once: those beyond it are told to come again, and none is lost or doubled', async () => {
  const { arn } = await deployAgent(platform, clients, { folder: join(import.meta.dirname, '../support/probe-agent') });
  const ids = ['a', 'b', 'c', 'd', 'e', 'f'].map(sessionId);
  const first = await Promise.allSettled(ids.map((id) => invokeJson(clients, arn, id, { do: 'count' })));
  const refused = first.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
  expect(refused.length).toBeGreaterThan(0);
  // One starts and one waits, whatever the order in which the calls came.
  expect(refused.length).toBeLessThanOrEqual(ids.length - 2);
  for (const error of refused) {
    expect(error).toBeInstanceOf(ThrottlingException);
    expect(error).toMatchObject({
      message: expect.stringMatching(/^Too many sessions are starting: 1 .*\. Repeat .*sandbox\.maxQueuedStarts\.$/),
      $metadata: expect.objectContaining({ httpStatusCode: 429 }),
      $response: expect.objectContaining({ headers: expect.objectContaining({ 'retry-after': '2' }) }),
    });
  }
  const answers = await Promise.all(
    ids.map((id, n) => {
      const outcome = first[n];
      return outcome?.status === 'fulfilled' ? outcome.value : untilStarted(arn, id);
    }),
  );
  expect(answers.map(({ count }) => count)).toEqual(ids.map(() => 1));
  // As many sandboxes as ids were made, and each id finds the memory of its own again.
  expect(await metric('agentplatform_sandbox_start_seconds_count')).toBe(ids.length);
  expect(await metric('agentplatform_sessions{state="active"}')).toBe(ids.length);
  const again = await Promise.all(ids.map((id) => invokeJson(clients, arn, id, { do: 'count' })));
  expect(again.map(({ count }) => count)).toEqual(ids.map(() => 2));
});
