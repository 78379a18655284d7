import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { traces } from '../../packages/platform/src/kernel/sandbox/testing/traces.ts';
import { clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const folder = join(import.meta.dirname, '../support/probe-agent');
let dataDir: string;
let platform: TestPlatform;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-supervised-'));
});
afterAll(async () => {
  await platform?.dispose();
  await rm(dataDir, { recursive: true, force: true });
});

const serverPid = async (): Promise<number> => Number(await readFile(join(dataDir, 'server.pid'), 'utf8'));

it('a server that is killed answers again by itself where it did, has its sandboxes with their memory, and says how often', async () => {
  platform = await startTestPlatform({ dataDir, supervised: true });
  const clients = clientsOf(platform);
  const { arn } = await deployAgent(platform, clients, { folder });
  const session = sessionId('supervised');
  const count = async (): Promise<unknown> => (await invokeJson(clients, arn, session, { do: 'count' })).count;
  const restarts = async (): Promise<string | undefined> =>
    /^agentplatform_server_restarts (\d+)$/m.exec(
      await (await fetch(`${platform.ready.endpoint}/metrics`)).text(),
    )?.[1];
  expect(await count()).toBe(1);
  expect(await restarts()).toBe('0');

  for (const kill of [1, 2]) {
    const before = await serverPid();
    expect(before).not.toBe(platform.pid);
    process.kill(before, 'SIGKILL');
    // Answered, or refused while nobody listens; the one who answers is another.
    await expect.poll(() => restarts().catch(() => undefined), { timeout: 60_000 }).toBe(String(kill));
    expect(await serverPid()).not.toBe(before);
    expect(await count()).toBe(kill + 1);
    expect(platform.log()).toContain('the server ended unasked (SIGKILL) and is started again');
    await expect.poll(() => platform.log(), { timeout: 60_000 }).toContain(`"restarts":${kill},"lastEnd":"SIGKILL"`);
  }

  clients.close();
  expect(await platform.end('SIGTERM')).toBe(0);
  for (const [kind, found] of Object.entries(await traces(dataDir))) expect(found, kind).toEqual([]);
});
