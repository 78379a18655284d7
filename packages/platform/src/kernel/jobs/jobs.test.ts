import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test, vi } from 'vitest';
import { describeDatabases, EMBEDDED_CACHE, silent, temporaryPglite } from '../storage/testing/databases.ts';
import { startPostgres } from '../storage/testing/postgres.ts';
import { NO_SPAN, NO_TRACER, type Span, type Tracer } from '../telemetry/index.ts';
import type { JobDefinition, JobRun } from './job-definition.ts';
import { createJobs } from './jobs.ts';

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

describeDatabases('jobs', [], (database) => {
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
  const soon = <T>(check: () => T) => vi.waitFor(check, { timeout: 15_000, interval: 20 });

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

  test('exclusive: of one key there is one, until it is done', async () => {
    const gate = Promise.withResolvers<void>();
    const seen: number[] = [];
    const run = async ({ data }: { data: Item }) => {
      seen.push(data.n);
      await gate.promise;
    };
    const { queue } = await startQueue({ keyed: 'exclusive', run });
    expect(await queue.enqueue({ n: 1 }, { key: 'a' })).toBeDefined();
    expect(await queue.enqueue({ n: 2 }, { key: 'a' })).toBeUndefined();
    expect(await queue.enqueue({ n: 3 }, { key: 'b' })).toBeDefined();
    await soon(() => expect(seen).toEqual([1, 3]));
    expect(await queue.enqueue({ n: 4 }, { key: 'a' })).toBeUndefined();
    gate.resolve();
    await soon(async () => expect(await queue.enqueue({ n: 5 }, { key: 'a' })).toBeDefined());
    await soon(() => expect(seen).toEqual([1, 3, 5]));
  });

  test('serial: all of one key run, never two at once; other keys run beside', async () => {
    let running = 0;
    let together = 0;
    const done: number[] = [];
    const run = async ({ data }: { data: Item }) => {
      running++;
      together = Math.max(together, running);
      await sleep(20);
      running--;
      done.push(data.n);
    };
    const { queue } = await startQueue({ keyed: 'serial', run, concurrency: 3 });
    for (const n of [1, 2, 3]) await queue.enqueue({ n }, { key: 'same' });
    await soon(() => expect(done).toHaveLength(3));
    expect(together).toBe(1);
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
  await vi.waitFor(() => expect(runs).toEqual([{ data: { n: 7 }, attempt: 2 }]), { timeout: 40_000, interval: 100 });
});
