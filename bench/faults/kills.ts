import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { pino } from 'pino';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { traces } from '../../packages/platform/src/kernel/sandbox/testing/traces.ts';
import { openDatabase } from '../../packages/platform/src/kernel/storage/index.ts';
import { type Clients, clientsOf } from '../../tests/support/clients.ts';
import { deployAgent } from '../../tests/support/deploy.ts';
import { invokeJson, sessionId } from '../../tests/support/invoke.ts';
import { type StartOptions, startTestPlatform } from '../../tests/support/platform-process.ts';

const AGENT = join(import.meta.dirname, '../../tests/support/probe-agent');
/** What a kill may cost: the samples of one interval, and what was gathered in memory for one write of the journal. */
const LOST_MS = 1_500;
/** Sessions that live on from kill to kill. */
const KEPT = 4;

/**
 * `npm run bench -- faults kills [--kills 100] [--process]`: kills the server at random moments while sessions start, answer and stop, and
 * keeps account: every id is answered by one agent that forgets nothing, nothing is left on the machine, no second of use is lost.
 */
export async function run(args: string[]): Promise<void> {
  const at = args.indexOf('--kills');
  const kills = at < 0 ? 100 : Number(args[at + 1]);
  const provider = args.includes('--process') ? ['--sandbox', 'process'] : [];
  const home = await mkdtemp(join(tmpdir(), 'agentplatform-kills-'));
  await chmod(home, 0o711);
  const dataDir = join(home, 'data');
  await mkdir(dataDir, { mode: 0o700 });
  const options = {
    dataDir,
    args: [
      ...provider,
      ...['--session-usage-interval-seconds', '1', '--pool-max-per-version', '2', '--log-level', 'warn'],
      // Two calls of each known session after every kill are more than an endpoint takes by default.
      ...['--quotas-invocations-per-second', '0'],
    ],
  };
  let platform = await startTestPlatform(options);
  try {
    let clients = clientsOf(platform);
    const { arn } = await deployAgent(platform, clients, { folder: AGENT });
    const account = new Account();
    for (let kill = 1; kill <= kills; kill += 1) {
      const work = drive(clients, arn, account);
      await sleep(Math.random() * 2500);
      await platform.end('SIGKILL');
      clients.close();
      await work;
      // One of three dies again on its way up, wherever that is: opening, taking sandboxes up, sweeping.
      if (kill % 3 === 0) await killedWhileStarting(options);
      platform = await startTestPlatform(options);
      clients = clientsOf(platform);
      await account.check((id) => count(clients, arn, id));
      // So that the machine does not fill up, and so that ends are among what is killed in the middle.
      for (const runtimeSessionId of account.surplus(KEPT))
        await clients.data.send(new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId }));
      if (kill % 10 === 0) process.stderr.write(`${kill} kills, ${account.summary()}\n`);
    }
    clients.close();
    if ((await platform.end()) !== 0) throw new Error('the last end was not orderly');
    await nothingLeft(dataDir);
    const lost = await lostUsage(dataDir);
    process.stdout.write(`${kills} kills: ${account.summary()}; nothing left on the machine; ${lost}\n`);
  } finally {
    await platform.end();
    await rm(home, { recursive: true, force: true });
  }
}

/** Ids that were answered, and how far each one's agent had counted. A count that does not go on is a memory lost or a second sandbox. */
class Account {
  readonly #ids = new Map<string, number>();
  #next = 0;
  #kept = 0;

  next(): string {
    this.#next += 1;
    const known = [...this.#ids.keys()];
    const old = known[Math.floor(Math.random() * known.length)];
    return old !== undefined && Math.random() < 0.6 ? old : sessionId(`kill-${this.#next}`);
  }

  note(id: string, count: number): void {
    // Answers of calls at once may come in any order; the agent itself never counts back.
    this.#ids.set(id, Math.max(count, this.#ids.get(id) ?? 0));
  }

  /** After a restart: every id that was answered before goes on counting, one by one. */
  async check(ask: (id: string) => Promise<number>): Promise<void> {
    for (const [id, before] of this.#ids) {
      const now = await ask(id);
      if (now <= before) throw new Error(`${id}: the agent that had counted to ${before} counts ${now}`);
      const again = await ask(id);
      if (again !== now + 1) throw new Error(`${id} is answered by two sandboxes: ${now}, then ${again}`);
      this.#ids.set(id, again);
      this.#kept += 1;
    }
  }

  /** Ids that are not used any more, but for so many; they are forgotten here. */
  surplus(keep: number): string[] {
    const ids = [...this.#ids.keys()];
    const gone = ids.slice(0, Math.max(0, ids.length - keep));
    for (const id of gone) this.#ids.delete(id);
    return gone;
  }

  summary(): string {
    return `${this.#kept} times a session was found again with its memory`;
  }
}

/** Uses, starts and stops sessions until the server is gone. */
async function drive(clients: Clients, arn: string, account: Account): Promise<void> {
  const lane = async (): Promise<void> => {
    for (;;) {
      const id = account.next();
      try {
        account.note(id, await count(clients, arn, id));
      } catch (error) {
        // A server that is gone, and what it cut; any answer of a living one but a count is a failure.
        if (error instanceof Error && '$response' in error && error.$response) throw error;
        return;
      }
    }
  };
  await Promise.all([lane(), lane(), lane()]);
}

async function count(clients: Clients, arn: string, id: string): Promise<number> {
  return Number((await invokeJson(clients, arn, id, { do: 'count' })).count);
}

/** A start that is killed within its first two seconds; one that is ready by then is killed all the same. */
async function killedWhileStarting(options: StartOptions): Promise<void> {
  const started = new AbortController();
  const starting = startTestPlatform({ ...options, signal: started.signal });
  await sleep(Math.random() * 2000);
  started.abort();
  const platform = await starting.catch(() => undefined);
  await platform?.end('SIGKILL');
}

async function nothingLeft(dataDir: string): Promise<void> {
  const left = Object.entries(await traces(dataDir)).filter(([, found]) => found.length > 0);
  if (left.length > 0) throw new Error(`left behind: ${JSON.stringify(Object.fromEntries(left))}`);
}

/** Every session that ended has its usage: to its end, or to the kill that it ended with but for one interval. */
async function lostUsage(dataDir: string): Promise<string> {
  const database = await openDatabase({ dataDir, clock: systemClock, log: pino({ enabled: false }) });
  try {
    // One with its final sample, taken before its sandbox was stopped, is whole, however long the stop took.
    const rows = await database.query<{
      sandbox_id: string;
      lived: number;
      used: number | null;
      final: boolean | null;
    }>(
      `SELECT s.sandbox_id, s.ended_at - s.activated_at AS lived, u.last_sample_at - s.activated_at AS used, u.final
       FROM sessions s LEFT JOIN session_usage u USING (sandbox_id) WHERE s.activated_at IS NOT NULL AND s.end_reason <> 'lost'`,
    );
    const open = await database.query('SELECT sandbox_id FROM sessions WHERE ended_at IS NULL');
    if (open.length > 0) throw new Error(`${open.length} sessions have no end`);
    const twice = await database.query('SELECT sandbox_id FROM session_usage GROUP BY sandbox_id HAVING count(*) > 1');
    if (twice.length > 0) throw new Error('a sandbox was counted twice');
    const lost = rows.filter(({ lived, used, final }) => !final && Number(used ?? 0) < Number(lived) - LOST_MS);
    const last = rows.filter(({ final }) => final).length;
    if (lost.length > 0)
      throw new Error(`usage of ${lost.length} of ${rows.length} sessions is short: ${JSON.stringify(lost[0])}`);
    return `usage of ${rows.length} sessions is whole, ${last} of them with a last sample at their end`;
  } finally {
    await database.close();
  }
}
