import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DockerDaemon } from '../../packages/platform/src/kernel/sandbox/testing/docker-daemon.ts';
import { lacksGvisor, RUNSC } from '../../packages/platform/src/kernel/sandbox/testing/gvisor.ts';
import { clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform } from '../support/platform-process.ts';

/** Connections that the endpoint takes in all: few enough for one sandbox to have them. */
const ALL = 40;

type Ask = (act: object) => Promise<Record<string, unknown>>;

/** Two sandboxes of one platform, one greedy and one that works. */
async function withTwo(args: string[], attack: (greedy: Ask, other: Ask) => Promise<void>): Promise<void> {
  const platform = await startTestPlatform({ args: ['--max-connections', String(ALL), ...args] });
  const clients = clientsOf(platform);
  try {
    const folder = join(import.meta.dirname, '../support/greedy-agent');
    const { arn } = await deployAgent(platform, clients, { folder });
    const in1 = sessionId('greedy');
    const in2 = sessionId('other');
    await attack(
      (act) => invokeJson(clients, arn, in1, act),
      (act) => invokeJson(clients, arn, in2, act),
    );
  } finally {
    clients.close();
    await platform.dispose();
  }
}

/** What sandboxes share at 169.254.170.2, against one that takes all of it; `provider` gives the arguments that choose it. */
function attacks(title: string, provider: () => string[]): void {
  describe(title, () => {
    it('one sandbox may not hold the connections of all', async () => {
      // The control: without a cap one has them all, and the other is not heard.
      await withTwo([...provider(), '--sandbox-max-connections', '10000'], async (greedy, other) => {
        expect(await other({ do: 'ask' })).toEqual({ 404: 1 });
        await greedy({ do: 'hoard', count: 2 * ALL });
        expect(await other({ do: 'ask' })).not.toEqual({ 404: 1 });
      });
      await withTwo([...provider(), '--sandbox-max-connections', '10'], async (greedy, other) => {
        await greedy({ do: 'hoard', count: 2 * ALL });
        await expect.poll(async () => (await greedy({ do: 'held' })).held).toBeLessThanOrEqual(10);
        expect(await other({ do: 'ask', count: 20 })).toEqual({ 404: 20 });
      });
    });

    it('one sandbox may not ask without end', async () => {
      await withTwo([...provider(), '--sandbox-requests-per-second', '0'], async (greedy) => {
        expect(await greedy({ do: 'ask', count: 60 })).toEqual({ 404: 60 });
      });
      await withTwo([...provider(), '--sandbox-requests-per-second', '1'], async (greedy, other) => {
        expect(await greedy({ do: 'ask', count: 60 })).toMatchObject({ 429: expect.any(Number) });
        expect(await other({ do: 'ask' })).toEqual({ 404: 1 });
      });
    });

    it('a connection that says nothing is ended', async () => {
      await withTwo([...provider(), '--request-head-seconds', '1'], async (greedy) => {
        expect(await greedy({ do: 'hoard', count: 20 })).toEqual({ held: 20 });
        await expect.poll(async () => (await greedy({ do: 'held' })).held, { timeout: 20_000 }).toBe(0);
      });
    });
  });
}

attacks('the sandbox endpoint on oci', () => ['--sandbox', 'oci']);

describe('with a daemon', () => {
  let daemon: DockerDaemon;
  beforeAll(async () => {
    daemon = await DockerDaemon.start();
  });
  afterAll(() => daemon.stop());
  attacks('the sandbox endpoint on docker', () => [
    '--sandbox',
    'docker',
    '--sandbox-docker-socket',
    daemon.socketPath,
  ]);
});

const lacking = lacksGvisor();
if (lacking) it('the sandbox endpoint on gVisor', (context) => context.skip(lacking));
else attacks('the sandbox endpoint on gVisor', () => ['--sandbox', 'oci', '--sandbox-oci-runtime', RUNSC]);
