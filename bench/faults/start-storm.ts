import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clients, clientsOf } from '../../tests/support/clients.ts';
import { deployAgent } from '../../tests/support/deploy.ts';
import { invokeJson, sessionId } from '../../tests/support/invoke.ts';
import { startTestPlatform } from '../../tests/support/platform-process.ts';

const AGENT = join(import.meta.dirname, '../../tests/support/probe-agent');
/** Starts at once and waiting ones that the platform takes, as it is configured unless told. */
const AT_MOST = 300;
/** One that is told to come again does, for so long. */
const PATIENCE_MS = 600_000;

/**
 * `npm run bench -- faults start-storm [--sessions 500]`: as many new sessions at once as the machine cannot start at once. Each gets its
 * own sandbox in the end; those beyond the queue are told so with ThrottlingException, and none is lost, made twice or left behind.
 */
export async function run(args: string[]): Promise<void> {
  const at = args.indexOf('--sessions');
  const sessions = at < 0 ? 500 : Number(args[at + 1]);
  const home = await mkdtemp(join(tmpdir(), 'agentplatform-storm-'));
  await chmod(home, 0o711);
  await mkdir(join(home, 'data'), { mode: 0o700 });
  const platform = await startTestPlatform({
    dataDir: join(home, 'data'),
    args: ['--quotas-invocations-per-second', '0', '--session-idle-seconds', '20', '--log-level', 'warn'],
  });
  // One client opens 50 connections at most.
  const clients = Array.from({ length: Math.ceil(sessions / 50) }, () => clientsOf(platform));
  const clientOf = (i: number): Clients => {
    const client = clients[i % clients.length];
    if (!client) throw new Error('--sessions takes a number of sessions');
    return client;
  };
  try {
    const { arn } = await deployAgent(platform, clientOf(0), { folder: AGENT });
    const began = performance.now();
    let throttled = 0;
    const start = async (i: number): Promise<number> => {
      const id = sessionId(`storm-${i}`);
      for (const deadline = Date.now() + PATIENCE_MS; ; await sleep(1000 + Math.random() * 2000)) {
        try {
          return Number((await invokeJson(clientOf(i), arn, id, { do: 'count' })).count);
        } catch (error) {
          if (!(error instanceof Error) || error.name !== 'ThrottlingException' || Date.now() > deadline) throw error;
          throttled += 1;
        }
      }
    };
    const counts = await Promise.all(Array.from({ length: sessions }, (_, i) => start(i)));
    const seconds = (performance.now() - began) / 1000;
    const wrong = counts.filter((one) => one !== 1).length;
    if (wrong > 0) throw new Error(`${wrong} of ${sessions} sessions were not answered by a fresh agent`);
    for (const client of clients) client.close();
    if (sessions > AT_MOST && throttled === 0)
      throw new Error('nobody was told to wait, so they were not asked for at once');
    if ((await platform.end()) !== 0) throw new Error('the end was not orderly');
    process.stdout.write(
      `${sessions} sessions asked for at once: all answered within ${Math.round(seconds)} s, told to wait ${throttled} times\n`,
    );
  } finally {
    await platform.end();
    await rm(home, { recursive: true, force: true });
  }
}
