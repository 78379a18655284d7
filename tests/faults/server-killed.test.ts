import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { traces } from '../../packages/platform/src/kernel/sandbox/testing/traces.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const folder = join(import.meta.dirname, '../support/probe-agent');
let dataDir: string;
let platform: TestPlatform;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-killed-'));
});
afterAll(async () => {
  await platform?.dispose();
  await rm(dataDir, { recursive: true, force: true });
});

async function expectNothingLeft(): Promise<void> {
  for (const [kind, found] of Object.entries(await traces(dataDir))) expect(found, kind).toEqual([]);
}

describe('a server that is killed', () => {
  it('finds its twenty live sessions again with their memory, and leaves nothing behind in the end', async () => {
    platform = await startTestPlatform({ dataDir });
    const clients = clientsOf(platform);
    const { arn } = await deployAgent(platform, clients, { folder });
    const sessions = Array.from({ length: 20 }, (_, n) => sessionId(`live${n}`));
    const counts = async (of: Clients): Promise<unknown[]> => {
      const answers = await Promise.all(sessions.map((session) => invokeJson(of, arn, session, { do: 'count' })));
      return answers.map(({ count }) => count);
    };
    expect(await counts(clients)).toEqual(sessions.map(() => 1));
    // Control: what is looked for afterwards is there now.
    for (const [kind, found] of Object.entries(await traces(dataDir))) expect(found, kind).not.toEqual([]);
    clients.close();
    await platform.end('SIGKILL');

    platform = await startTestPlatform({ dataDir });
    const again = clientsOf(platform);
    expect(await counts(again)).toEqual(sessions.map(() => 2));
    again.close();
    expect(await platform.end('SIGTERM')).toBe(0);

    await expectNothingLeft();
  });

  it('in the middle of a start has no half sandbox after it started again', async () => {
    platform = await startTestPlatform({ dataDir });
    const clients = clientsOf(platform);
    const { arn } = await deployAgent(platform, clients, { folder });
    for (const delayMs of [20, 80, 160, 320]) {
      const session = sessionId('half');
      const client = clientsOf(platform);
      const call = invokeJson(client, arn, session, { do: 'count' }).catch(() => undefined);
      await sleep(delayMs);
      await platform.end('SIGKILL');
      await call;
      client.close();
      platform = await startTestPlatform({ dataDir });
      const next = clientsOf(platform);
      // Either the start was taken up or it was swept away; the id answers from one sandbox.
      const first = Number((await invokeJson(next, arn, session, { do: 'count' })).count);
      expect([1, 2]).toContain(first);
      expect((await invokeJson(next, arn, session, { do: 'count' })).count).toBe(first + 1);
      next.close();
    }
    clients.close();
    expect(await platform.end('SIGTERM')).toBe(0);
    await expectNothingLeft();
  });
});
