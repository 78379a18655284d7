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
interface Two {
  greedy: Ask;
  other: Ask;
  /** Errors of the server that only its last line of defence has met. */
  unhandled(): Promise<string | undefined>;
  close(): Promise<void>;
}

async function openTwo(args: string[]): Promise<Two> {
  const platform = await startTestPlatform({ args: ['--max-connections', String(ALL), ...args] });
  const clients = clientsOf(platform);
  const close = async (): Promise<void> => {
    clients.close();
    await platform.dispose();
  };
  try {
    const folder = join(import.meta.dirname, '../support/greedy-agent');
    const { arn } = await deployAgent(platform, clients, { folder });
    const in1 = sessionId('greedy');
    const in2 = sessionId('other');
    return {
      greedy: (act) => invokeJson(clients, arn, in1, act),
      other: (act) => invokeJson(clients, arn, in2, act),
      unhandled: async () => {
        const metrics = await (await fetch(`${platform.ready.endpoint}/metrics`)).text();
        return /^agentplatform_unhandled_errors (\d+)$/m.exec(metrics)?.[1];
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What sandboxes share at 169.254.170.2, against one that takes all of it; `provider` gives the arguments that choose it. */
function attacks(title: string, provider: () => string[]): void {
  describe(title, () => {
    describe('without a cap, as a control', () => {
      let two: Two;
      beforeAll(async () => {
        const caps = ['--sandbox-requests-per-second', '0', '--sandbox-max-connections', '10000'];
        two = await openTwo([...provider(), ...caps]);
      });
      afterAll(() => two?.close());

      it('one sandbox asks without end', async () => {
        expect(await two.greedy({ do: 'ask', count: 60 })).toEqual({ 404: 60 });
      });

      it('one sandbox has the connections of all, and the other is not heard', async () => {
        expect(await two.other({ do: 'ask' })).toEqual({ 404: 1 });
        await two.greedy({ do: 'hoard', count: 2 * ALL });
        expect(await two.other({ do: 'ask' })).not.toEqual({ 404: 1 });
      });
    });

    it('one sandbox may not hold the connections of all, and its cut requests end nothing', async () => {
      const { greedy, other, unhandled, close } = await openTwo([...provider(), '--sandbox-max-connections', '10']);
      try {
        await greedy({ do: 'hoard', count: 2 * ALL });
        await expect.poll(async () => (await greedy({ do: 'held' })).held).toBeLessThanOrEqual(10);
        expect(await other({ do: 'ask', count: 20 })).toEqual({ 404: 20 });
        // What ended a server in November 2026, where nobody hears a stage's errors (`faults/rude-clients.test.ts` has the control).
        expect(await other({ do: 'cut', pauses: [0, 1, 5, 20, 100] })).toEqual({ cut: 5 });
        expect(await other({ do: 'ask' })).toEqual({ 404: 1 });
        expect(await unhandled()).toBe('0');
      } finally {
        await close();
      }
    });

    describe('with little patience', () => {
      let two: Two;
      beforeAll(async () => {
        const caps = ['--sandbox-requests-per-second', '1', '--request-head-seconds', '1'];
        two = await openTwo([...provider(), ...caps]);
      });
      afterAll(() => two?.close());

      it('one sandbox may not ask without end', async () => {
        expect(await two.greedy({ do: 'ask', count: 60 })).toMatchObject({ 429: expect.any(Number) });
        expect(await two.other({ do: 'ask' })).toEqual({ 404: 1 });
      });

      it('a connection that says nothing is ended', async () => {
        expect(await two.greedy({ do: 'hoard', count: 20 })).toEqual({ held: 20 });
        await expect.poll(async () => (await two.greedy({ do: 'held' })).held, { timeout: 20_000 }).toBe(0);
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
