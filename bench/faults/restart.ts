import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { clientsOf } from '../../tests/support/clients.ts';
import { deployAgent } from '../../tests/support/deploy.ts';
import { invokeJson, sessionId } from '../../tests/support/invoke.ts';
import { startTestPlatform } from '../../tests/support/platform-process.ts';
import { median } from '../support/statistics.ts';

const AGENT = join(import.meta.dirname, '../../tests/support/probe-agent');
const SESSIONS = 4;
/** The platform answers again within this time after `kill -9`, or the bench fails. */
const LONGEST_MS = 4000;
/** The supervisor waits longer and longer for a server that ends soon after its start; this one has had a good time. */
const BETWEEN_MS = 61_000;

/**
 * `npm run bench -- faults restart [--kills 5] [--process]`: kills the server under its supervisor, and tells how long until the platform
 * answers again and until each session is answered from its memory. Fails when one of these takes longer than 4 s after a kill, or a memory was lost.
 */
export async function run(args: string[]): Promise<void> {
  const at = args.indexOf('--kills');
  const kills = at < 0 ? 5 : Number(args[at + 1]);
  const platform = await startTestPlatform({
    supervised: true,
    args: args.includes('--process') ? ['--sandbox', 'process'] : [],
  });
  const clients = clientsOf(platform);
  try {
    const { arn } = await deployAgent(platform, clients, { folder: AGENT });
    const sessions = Array.from({ length: SESSIONS }, (_, index) => sessionId(`restart-${index}`));
    const counts = (): Promise<unknown[]> =>
      Promise.all(sessions.map(async (id) => (await invokeJson(clients, arn, id, { do: 'count' })).count));
    await counts();
    const answered: number[] = [];
    const whole: number[] = [];
    for (let kill = 1; kill <= kills; kill += 1) {
      await sleep(BETWEEN_MS);
      const pid = Number(await readFile(join(platform.dataDir, 'server.pid'), 'utf8'));
      const killed = performance.now();
      process.kill(pid, 'SIGKILL');
      await answers(platform.ready.endpoint);
      answered.push(performance.now() - killed);
      const found = await counts();
      whole.push(performance.now() - killed);
      if (found.some((count) => count !== kill + 1)) throw new Error(`memory was lost: ${JSON.stringify(found)}`);
      process.stdout.write(`kill ${kill}: answers after ${answered.at(-1)?.toFixed(0)} ms\n`);
    }
    process.stdout.write(
      `${kills} kills: answers again after ${spread(answered)}, ${SESSIONS} sessions from their memory after ${spread(whole)}\n`,
    );
    if (Math.max(...whole) > LONGEST_MS) {
      process.stdout.write(`longer than ${LONGEST_MS} ms\n`);
      process.exitCode = 1;
    }
  } finally {
    clients.close();
    await platform.dispose();
  }
}

/** Resolves when a server answers again; the killed one has closed its port. */
async function answers(endpoint: string): Promise<void> {
  for (;;) {
    const status = await fetch(`${endpoint}/metrics`, { headers: { connection: 'close' } }).then(
      (answer) => answer.status,
      () => undefined,
    );
    if (status === 200) return;
    await sleep(20);
  }
}

function spread(ms: number[]): string {
  return `p50 ${median(ms).toFixed(0)} ms (longest ${Math.max(...ms).toFixed(0)} ms)`;
}
