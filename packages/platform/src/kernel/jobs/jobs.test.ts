import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { FakeClock } from '../fake-clock.ts';
import { describeDatabases, EMBEDDED_CACHE, silent, temporaryPglite } from '../storage/testing/databases.ts';
import { startPostgres } from '../storage/testing/postgres.ts';
import { NO_SPAN, NO_TRACER, type Span, type Tracer } from '../telemetry/index.ts';
import type { JobDefinition, JobRun } from './job-definition.ts';
import { addJob, endJob, releaseSilent, takeJobs, takeLine, wakeLines } from './job-store.ts';
import { createJobs, type Jobs } from './jobs.ts';
import { jobMigrations } from './tables.ts';

interface Item {
  n: number;
}

const parse = (data: unknown): Item => {
  if (typeof data === 'object' && data !== null && 'n' in data && typeof data.n === 'number') return { n: data.n };
  throw new Error('not an item');
};

const cleanups: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describeDatabases('jobs', jobMigrations, (database, kind) => {
  let counter = 0;
  const startQueue = async (
    definition: Omit<JobDefinition<Item>, 'parse'>,
    name = `queue-${++counter}`,
    tracer?: Tracer,
  ) => {
    const jobs = createJobs({ database: database(), log: silent, tracer, pollSeconds: 0.5 });
    const queue = jobs.define<Item>(name, { parse, retryDelay: 0, ...definition });
    await jobs.start();
    cleanups.push(() => jobs.stop(100));
    return { jobs, queue, name };
  };
  // Long, because on a machine with more to do than it can the embedded database has a turn now and then only.
  const soon = <T>(check: () => T) => vi.waitFor(check, { timeout: 60_000, interval: 20 });
  /** Time stands still on its clock, so that it neither looks nor renews leases; it is stopped after the test. */
  const stopLater = (jobs: Jobs, clock: FakeClock): void => void cleanups.push(() => stopNow(jobs, clock));
  const stopNow = async (jobs: Jobs, clock: FakeClock): Promise<void> => {
    let over = false;
    const stopping = jobs.stop(0).finally(() => {
      over = true;
    });
    while (!over) await clock.advance(1).then(() => sleep(1));
    await stopping;
  };
  /** Some statement waits for what a transaction holds. */
  const blocked = () =>
    soon(async () => expect(await database().query('SELECT FROM pg_locks WHERE NOT granted')).not.toEqual([]));

  test('a job is run with its data, later ones later', async () => {
    const ran = new Map<number, number>();
    const { queue } = await startQueue({ run: async ({ data }) => void ran.set(data.n, Date.now()) });
    const due = Date.now() + 800;
    await queue.enqueue({ n: 2 }, { startAfter: new Date(due) });
    await queue.enqueue({ n: 1 });
    await soon(() => expect([...ran.keys()].toSorted()).toEqual([1, 2]));
    expect(ran.get(2)).toBeGreaterThanOrEqual(due);
    await expect(queue.enqueue({ n: 3 })).resolves.toMatch(/^[0-9a-f-]{36}$/);
  });

  test('what fails is tried again, and in the end kept, listed, and run when asked', async () => {
    const attempts: number[] = [];
    let heal = false;
    const run = async ({ attempt }: { attempt: number }) => {
      attempts.push(attempt);
      if (!heal) throw new Error('still broken');
    };
    const { queue } = await startQueue({ run, retries: 1 });
    const id = await queue.enqueue({ n: 5 });
    await soon(async () => expect(await queue.listFailed()).toHaveLength(1));
    expect(attempts).toEqual([1, 2]);
    expect(await queue.listFailed()).toEqual([
      { id, data: { n: 5 }, attempts: 2, error: 'still broken', failedAt: expect.any(Date) },
    ]);
    heal = true;
    await queue.retry(id ?? '');
    await soon(() => expect(attempts).toHaveLength(3));
    await soon(async () => expect(await queue.listFailed()).toEqual([]));
  });

  test('data of another shape fails instead of reaching the handler', async () => {
    const run = vi.fn(async () => {});
    const { queue } = await startQueue({ run, retries: 0 });
    await queue.enqueue(JSON.parse('{"n":"text"}'));
    await soon(async () => expect(await queue.listFailed()).toMatchObject([{ error: 'not an item' }]));
    expect(run).not.toHaveBeenCalled();
  });

  test('each run has a span of its own, which ends with it and has the code of its failure', async () => {
    const told: unknown[] = [];
    const work = (of: string): Span => ({
      ...NO_SPAN,
      traced: true,
      set: (name, value) => told.push([of, name, value]),
      fail: (code) => told.push([of, 'failed', code]),
      end: () => told.push([of, 'ended']),
    });
    const run = async ({ attempt, span }: JobRun<Item>) => {
      span.set('traced', span.traced);
      if (attempt === 1) throw new RangeError('the secret cause');
    };
    const { queue, name } = await startQueue({ run, retries: 1 }, undefined, { ...NO_TRACER, work });
    const id = await queue.enqueue({ n: 1 });
    const of = `job ${name}`;
    const begun = (attempt: number) => [
      [of, 'messaging.message.id', id],
      [of, 'agentplatform.job.attempt', attempt],
      [of, 'traced', true],
    ];
    const failed = [...begun(1), [of, 'failed', 'RangeError'], [of, 'ended']];
    await soon(() => expect(told).toEqual([...failed, ...begun(2), [of, 'ended']]));
  });

  test('within a transaction a job exists only if it commits', async () => {
    const seen: number[] = [];
    const { queue } = await startQueue({ run: async ({ data }) => void seen.push(data.n) });
    const undone = database().transaction(async (tx) => {
      await queue.enqueue({ n: 1 }, { within: tx });
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    await database().transaction((tx) => queue.enqueue({ n: 2 }, { within: tx }));
    await soon(() => expect(seen).toEqual([2]));
  });

  test('of one key one runs at a time, in their order; other keys run beside', async () => {
    let running = 0;
    let together = 0;
    const done: number[] = [];
    const gate = Promise.withResolvers<void>();
    const run = async ({ data }: { data: Item }) => {
      if (data.n === 0) return gate.promise;
      running++;
      together = Math.max(together, running);
      await sleep(20);
      running--;
      done.push(data.n);
    };
    const { queue } = await startQueue({ run, concurrency: 3 });
    await queue.enqueue({ n: 0 }, { key: 'other' });
    const wanted = Array.from({ length: 9 }, (_, n) => n + 1);
    await database().transaction(async (tx) => {
      for (const n of wanted) await queue.enqueue({ n }, { key: 'same', within: tx });
    });
    queue.look();
    await soon(() => expect(done).toEqual(wanted));
    expect(together).toBe(1);
    gate.resolve();
  });

  test('one that is to be tried again holds up those of its key, one that is given up does not', async () => {
    const seen: string[] = [];
    const givenUp: unknown[] = [];
    const run: JobDefinition<Item>['run'] = async ({ data, attempt }) => {
      seen.push(`${data.n}.${attempt}`);
      if (data.n < 3) throw new Error(`no ${data.n}`);
    };
    const giveUp: JobDefinition<Item>['giveUp'] = async ({ data }, error) => void givenUp.push([data.n, error]);
    const { queue } = await startQueue({ run, giveUp, retries: 1, retryDelay: 0.1, concurrency: 3 });
    for (const n of [1, 2, 3]) await queue.enqueue({ n }, { key: 'same' });
    await soon(() => expect(seen).toEqual(['1.1', '1.2', '2.1', '2.2', '3.1']));
    expect(givenUp).toEqual([
      [1, new Error('no 1')],
      [2, new Error('no 2')],
    ]);
    expect(await queue.listFailed()).toEqual([]);
  });

  test('two servers share a queue: each job runs once, and of one key one at a time', async () => {
    const done: number[] = [];
    const busy = new Set<number>();
    const overlaps: number[] = [];
    const run = async ({ data }: { data: Item }) => {
      const line = data.n % 5;
      if (busy.has(line)) overlaps.push(data.n);
      busy.add(line);
      await sleep(1);
      busy.delete(line);
      done.push(data.n);
    };
    const { queue: one, name } = await startQueue({ run });
    const { queue: two } = await startQueue({ run }, name);
    const numbers = Array.from({ length: 60 }, (_, n) => n);
    await Promise.all(
      [0, 1, 2, 3, 4].map(async (line) => {
        for (const n of numbers.filter((each) => each % 5 === line))
          await (n % 2 === 0 ? one : two).enqueue({ n }, { key: `line${line}` });
      }),
    );
    await soon(() => expect(done.toSorted((a, b) => a - b)).toEqual(numbers));
    expect(overlaps).toEqual([]);
    for (const line of [0, 1, 2, 3, 4])
      expect(done.filter((n) => n % 5 === line)).toEqual(numbers.filter((n) => n % 5 === line));
  });

  test('a job ends with the effects of its run, or neither happens', async () => {
    await database().exec('CREATE TABLE IF NOT EXISTS effects (n int)');
    const seen: string[] = [];
    const run: JobDefinition<Item>['run'] = async ({ data, attempt, end }) => {
      await database().transaction(async (tx) => {
        expect(await end(tx)).toBe(true);
        await tx.execute('INSERT INTO effects VALUES ($1)', [data.n]);
        seen.push(`${data.n}.${attempt}`);
        if (attempt === 1) throw new Error('undone');
      });
      // Too late to be run again.
      throw new Error('after the commit');
    };
    const { queue, name } = await startQueue({ run });
    await database().transaction(async (tx) => {
      for (const n of [1, 2]) await queue.enqueue({ n }, { key: 'same', within: tx });
    });
    queue.look();
    await soon(async () => expect(await database().query('SELECT id FROM jobs WHERE queue = $1', [name])).toEqual([]));
    expect(seen).toEqual(['1.1', '1.2', '2.1', '2.2']);
    expect(await database().query('SELECT n FROM effects ORDER BY n')).toEqual([{ n: 1 }, { n: 2 }]);
  });

  test("a run whose job is another server's by now cannot end it", async () => {
    const name = `queue-${++counter}`;
    await addJob(database(), { queue: name, data: '{}', key: 'same', startAfter: undefined });
    const [late] = await takeJobs(database(), name, 1);
    await database().execute("UPDATE jobs SET lease_until = now() - interval '1 second' WHERE queue = $1", [name]);
    await releaseSilent(database(), 'silent');
    const [taken] = await takeJobs(database(), name, 1);
    if (!late || !taken) throw new Error('nobody took it');
    expect(await endJob(database(), late)).toBe(false);
    expect(await endJob(database(), taken)).toBe(true);
  });

  const line = async (count: number, startAfter?: (n: number) => Date | undefined): Promise<string> => {
    const name = `queue-${++counter}`;
    for (let n = 1; n <= count; n++)
      await addJob(database(), { queue: name, data: `${n}`, key: 'same', startAfter: startAfter?.(n) });
    return name;
  };
  const datas = (jobs: readonly { data: string }[]): string[] => jobs.map(({ data }) => data);

  test('several of a line are held until the last of them has ended, whatever another server sees', async () => {
    const name = await line(4);
    const [first, ...others] = await takeLine(database(), name, 'same', 3);
    expect(datas(others)).toEqual(['2', '3']);
    if (!first) throw new Error('the first was not taken');
    expect(await endJob(database(), first)).toBe(true);
    expect(await takeJobs(database(), name, 5)).toEqual([]);
    const beside = takeLine(database(), name, 'same', 3);
    await expect(beside.then(datas, ({ code }) => code)).resolves.toBe('23505');
    for (const job of others) await endJob(database(), job);
    expect(datas(await takeLine(database(), name, 'same', 3))).toEqual(['4']);
  });

  test('a line is taken up to the first whose time has not come, and that one has its turn later', async () => {
    const name = await line(4, (n) => (n === 3 ? new Date(Date.now() + 60_000) : undefined));
    for (const job of await takeLine(database(), name, 'same', 9)) await endJob(database(), job);
    expect(await takeLine(database(), name, 'same', 9)).toEqual([]);
    expect(await takeJobs(database(), name, 9)).toEqual([]);
    await database().execute('UPDATE jobs SET due_at = now() WHERE queue = $1', [name]);
    expect(datas(await takeJobs(database(), name, 9))).toEqual(['3']);
  });

  test('one of a long line that fails holds up those taken with it, and they are not the worse for it', async () => {
    const seen: string[] = [];
    const run: JobDefinition<Item>['run'] = async ({ data, attempt }) => {
      seen.push(`${data.n}.${attempt}`);
      if (data.n === 3 && attempt === 1) throw new Error('not yet');
    };
    const { queue } = await startQueue({ run, retryDelay: 0.1, concurrency: 3 });
    await database().transaction(async (tx) => {
      for (const n of [1, 2, 3, 4, 5]) await queue.enqueue({ n }, { key: 'same', within: tx });
    });
    queue.look();
    await soon(() => expect(seen).toEqual(['1.1', '2.1', '3.1', '3.2', '4.1', '5.1']));
  });

  test("what a server that stops has taken and not begun is another's at once, as if it had not been taken", async () => {
    const began = Promise.withResolvers<void>();
    const run: JobDefinition<Item>['run'] = async ({ data, signal }) => {
      if (data.n === 1) return;
      began.resolve();
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    };
    // No round gives the second its turn before this server goes on with the line.
    const clock = new FakeClock();
    const name = `queue-${++counter}`;
    const jobs = createJobs({ database: database(), log: silent, clock });
    const queue = jobs.define<Item>(name, { parse, run });
    await jobs.start();
    stopLater(jobs, clock);
    await database().transaction(async (tx) => {
      for (const n of [1, 2, 3, 4]) await queue.enqueue({ n }, { key: 'same', within: tx });
    });
    queue.look();
    await began.promise;
    await stopNow(jobs, clock);
    const states = 'SELECT state, runs, followed FROM jobs WHERE queue = $1 ORDER BY seq';
    const waiting = (runs: number) => ({ state: 'waiting', runs, followed: false });
    expect(await database().query(states, [name])).toEqual([waiting(1), waiting(0), waiting(0)]);
    const seen: string[] = [];
    await startQueue({ run: async ({ data, attempt }) => void seen.push(`${data.n}.${attempt}`) }, name);
    await soon(() => expect(seen).toEqual(['2.2', '3.1', '4.1']));
  });

  test('a job whose transaction commits late does not run beside the one of its key that overtook it', async () => {
    const name = `queue-${++counter}`;
    const add = (seq: number, id: string): Promise<number> =>
      database().execute(
        "INSERT INTO jobs (id, seq, queue, key, data) OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, 'same', '{}')",
        [`${name} ${id}`, seq, name],
      );
    await add(900_002, 'second');
    const [taken] = await takeJobs(database(), name, 5);
    expect(taken?.id).toBe(`${name} second`);
    await add(900_001, 'first');
    expect(await takeJobs(database(), name, 5)).toEqual([]);
    await expect(
      database().execute("UPDATE jobs SET state = 'running' WHERE queue = $1 AND seq = 900001", [name]),
    ).rejects.toMatchObject({ code: '23505' });
    if (taken) await endJob(database(), taken);
    expect((await takeJobs(database(), name, 5)).map(({ id }) => id)).toEqual([`${name} first`]);
  });

  const insert = (queue: string, seq: number, state: string): Promise<number> =>
    database().execute(
      "INSERT INTO jobs (seq, queue, key, data, state) OVERRIDING SYSTEM VALUE VALUES ($1, $2, 'same', $3, $4)",
      [seq, queue, `${seq}`, state],
    );

  test('a job whose transaction commits late goes before the one that waits and came later', async () => {
    const name = `queue-${++counter}`;
    await insert(name, 900_012, 'waiting');
    await insert(name, 900_011, 'behind');
    expect(await takeJobs(database(), name, 5)).toEqual([]);
    await wakeLines(database());
    expect(datas(await takeJobs(database(), name, 5))).toEqual(['900011']);
  });

  // The embedded database runs one statement at a time.
  if (kind === 'postgres') {
    test('a line that is given its turn while a server takes it stays with that server', async () => {
      const name = `queue-${++counter}`;
      for (const seq of [900_021, 900_022]) await insert(name, seq, 'behind');
      let waking: Promise<void> | undefined;
      await database().transaction(async (tx) => {
        expect(datas(await takeLine(tx, name, 'same', 2))).toEqual(['900021', '900022']);
        waking = wakeLines(database());
        await blocked();
      });
      await waking;
      expect(await takeJobs(database(), name, 5)).toEqual([]);
      expect(await database().query('SELECT DISTINCT state FROM jobs WHERE queue = $1', [name])).toEqual([
        { state: 'running' },
      ]);
    });

    test('what was chosen together with a job that another server takes at the same moment is looked for again', async () => {
      const name = `queue-${++counter}`;
      const seen: string[] = [];
      const jobs = createJobs({ database: database(), log: silent, pollSeconds: 3_600 });
      jobs.define<Item>(name, { parse, run: async ({ data }) => void seen.push(`${data.n}`) });
      cleanups.push(() => jobs.stop(100));
      await insert(name, 900_032, 'waiting');
      await addJob(database(), { queue: name, data: '{"n":7}', key: undefined, startAfter: undefined });
      await database().transaction(async (tx) => {
        expect(await tx.execute("UPDATE jobs SET state = 'running', runs = 1 WHERE seq = 900032")).toBe(1);
        await insert(name, 900_031, 'waiting');
        await jobs.start();
        await blocked();
      });
      await soon(() => expect(seen).toEqual(['7']));
    });
  }

  test('a line whose next job came while the one before it was ending has its turn within seconds', async () => {
    const clock = new FakeClock();
    const seen: number[] = [];
    const jobs = createJobs({ database: database(), log: silent, clock });
    const name = `queue-${++counter}`;
    jobs.define<Item>(name, { parse, run: async ({ data }) => void seen.push(data.n) });
    await jobs.start();
    stopLater(jobs, clock);
    for (const n of [1, 2])
      await database().execute(
        "INSERT INTO jobs (queue, key, data, state) VALUES ($1, 'same', json_build_object('n', $2::int)::text, 'behind')",
        [name, n],
      );
    await expect.poll(() => clock.advance(5_000).then(() => seen), { timeout: 60_000 }).toEqual([1, 2]);
  });

  test('a job that comes while the last of its key ends is run', async () => {
    const seen: number[] = [];
    const { queue } = await startQueue({
      run: async ({ data }) => {
        seen.push(data.n);
        if (data.n < 20) await queue.enqueue({ n: data.n + 1 }, { key: 'same' });
      },
    });
    await queue.enqueue({ n: 1 }, { key: 'same' });
    await soon(() => expect(seen).toHaveLength(20));
  });

  test('a run that takes too long is aborted and counts as a failure, whether or not it heeds that', async () => {
    const aborted: unknown[] = [];
    const run: JobDefinition<Item>['run'] = ({ signal }) => {
      signal.addEventListener('abort', () => aborted.push(signal.reason));
      return new Promise(() => {});
    };
    const { queue } = await startQueue({ run, retries: 0, timeout: 0.05 });
    await queue.enqueue({ n: 1 });
    await soon(async () =>
      expect(await queue.listFailed()).toMatchObject([{ error: 'the run took longer than 0.05 s' }]),
    );
    expect(aborted).toHaveLength(1);
  });

  /** A server that stands still; it runs the one job that was there when it started, for ever. */
  const startStill = async () => {
    const clock = new FakeClock();
    const name = `queue-${++counter}`;
    const runs: { attempt: number; signal: AbortSignal }[] = [];
    const jobs = createJobs({ database: database(), log: silent, clock });
    const queue = jobs.define<Item>(name, {
      parse,
      run: async ({ attempt, signal }) => {
        runs.push({ attempt, signal });
        await new Promise(() => {});
      },
    });
    await addJob(database(), { queue: name, data: '{"n":1}', key: undefined, startAfter: undefined });
    await jobs.start();
    stopLater(jobs, clock);
    await soon(() => expect(runs).toHaveLength(1));
    await database().execute("UPDATE jobs SET lease_until = now() - interval '1 second' WHERE queue = $1", [name]);
    return { clock, name, queue, runs };
  };
  const lost = new Error('another run has the job');

  test('what another server took from one that was silent is cut there, and ends once', async () => {
    const { clock, name, runs } = await startStill();
    const seen: number[] = [];
    await startQueue({ run: async ({ data, attempt }) => void seen.push(data.n, attempt) }, name);
    await soon(() => expect(seen).toEqual([1, 2]));
    await clock.advance(5_000);
    await soon(() => expect(runs[0]?.signal.reason).toEqual(lost));
    await soon(async () => expect(await database().query('SELECT id FROM jobs WHERE queue = $1', [name])).toEqual([]));
    expect(seen).toHaveLength(2);
    expect(runs).toHaveLength(1);
  });

  test('what a server lost and took again is run by the later run alone', async () => {
    const { clock, queue, runs } = await startStill();
    await releaseSilent(database(), 'silent');
    queue.look();
    await soon(() => expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2]));
    await clock.advance(5_000);
    await soon(() => expect(runs[0]?.signal.reason).toEqual(lost));
    expect(runs[1]?.signal.aborted).toBe(false);
  });

  test('jobs of a queue that nobody defines any more go to its heir, in their order', async () => {
    const before = `queue-${++counter}`;
    const old = createJobs({ database: database(), log: silent }).define<Item>(before, { parse, run: async () => {} });
    for (const n of [1, 2, 3]) await old.enqueue({ n }, { key: 'same' });
    const seen: number[] = [];
    await startQueue({ run: async ({ data }) => void seen.push(data.n), inherits: (name) => name === before });
    await soon(() => expect(seen).toEqual([1, 2, 3]));
  });

  test('stop waits for what runs; what is cut short is aborted and run again at the next start', async () => {
    const began = Promise.withResolvers<void>();
    const run: JobDefinition<Item>['run'] = ({ signal }) =>
      new Promise((_, reject) => {
        began.resolve();
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      });
    const { jobs, queue, name } = await startQueue({ run });
    await queue.enqueue({ n: 1 });
    await began.promise;
    await jobs.stop(50);
    const seen: number[] = [];
    await startQueue({ run: async ({ data, attempt }) => void seen.push(data.n, attempt) }, name);
    await soon(() => expect(seen).toEqual([1, 2]));
  });

  test('a job must be defined once, and before the start', async () => {
    const { jobs, name } = await startQueue({ run: async () => {} });
    expect(() => jobs.define('late', { parse, run: async () => {} })).toThrow(/after the start/);
    const others = createJobs({ database: database(), log: silent });
    others.define(name, { parse, run: async () => {} });
    expect(() => others.define(name, { parse, run: async () => {} })).toThrow(/twice/);
  });
});

test.each(['pglite', 'postgres'])('a run cut short by kill -9 is run again after the restart, on %s', async (kind) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-jobs-'));
  cleanups.push(() => rm(dataDir, { recursive: true, force: true }));
  const server = kind === 'postgres' ? await startPostgres() : undefined;
  if (server) cleanups.push(() => server.stop());
  const url = await server?.createDatabase();
  const script = join(import.meta.dirname, 'testing/run-job.ts');
  const args = [script, dataDir, EMBEDDED_CACHE, ...(url ? [url] : [])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  cleanups.push(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
  const { database, dispose } = await temporaryPglite({ dataDir, url });
  cleanups.push(dispose);
  const jobs = createJobs({ database, log: silent });
  const runs: unknown[] = [];
  jobs.define<Item>('endless', { parse, run: async ({ data, attempt }) => void runs.push({ data, attempt }) });
  await jobs.start();
  cleanups.push(() => jobs.stop(100));
  await vi.waitFor(() => expect(runs).toEqual([{ data: { n: 7 }, attempt: 2 }]), { timeout: 120_000, interval: 100 });
});
