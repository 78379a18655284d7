import { randomUUID } from 'node:crypto';
import type { Executor, RetentionRule } from '../storage/index.ts';
import type { FailedJob } from './job-definition.ts';

/** A job that this server has taken; `runs` tells its run from those before and after it. */
export interface TakenJob {
  id: string;
  queue: string;
  key: string | null;
  data: string;
  runs: number;
  failures: number;
}

export interface NewJob {
  queue: string;
  data: string;
  key: string | undefined;
  startAfter: Date | undefined;
}

/** How long a server that is silent keeps the jobs it runs. */
const LEASE = "interval '15 seconds'";
const MAX_ERROR = 10_000;
const RUN = "id = $1 AND runs = $2 AND state = 'running'";
const RUNS = '(id, runs) IN (SELECT r->>0, (r->>1)::int FROM jsonb_array_elements($1::jsonb) r)';

/** Gives its id. */
export async function addJob(executor: Executor, { queue, data, key, startAfter }: NewJob): Promise<string> {
  const id = randomUUID();
  await executor.query('SELECT enqueue_job($1, $2, $3, $4, $5)', [id, queue, key ?? null, data, startAfter ?? null]);
  return id;
}

/**
 * Takes at most `limit` jobs whose time has come, the longest wait first; of one key the first alone, and none while one runs. Two servers
 * that look at the same moment may choose two of one key: then the unique index lets one of them have it, and the other's statement fails.
 */
export function takeJobs(executor: Executor, queue: string, limit: number): Promise<TakenJob[]> {
  return executor.query<TakenJob>(
    `WITH next AS (
       SELECT id FROM jobs j WHERE queue = $1 AND state = 'waiting' AND due_at <= now() AND (key IS NULL OR (
         seq = (SELECT h.seq FROM jobs h WHERE h.queue = j.queue AND h.key = j.key AND h.state <> 'failed' ORDER BY h.seq LIMIT 1)
         AND NOT EXISTS (SELECT FROM jobs r WHERE r.queue = j.queue AND r.key = j.key AND r.state = 'running')))
       ORDER BY seq LIMIT $2 FOR UPDATE SKIP LOCKED)
     UPDATE jobs SET state = 'running', runs = runs + 1, lease_until = now() + ${LEASE}
     FROM next WHERE jobs.id = next.id RETURNING jobs.id, queue, key, data, runs, failures`,
    [queue, limit],
  );
}

/** The run is over and so is the job; false when it is not this server's any more. */
export async function endJob(executor: Executor, { id, runs }: TakenJob): Promise<boolean> {
  return (await executor.execute(`DELETE FROM jobs WHERE ${RUN}`, [id, runs])) === 1;
}

/**
 * Goes on with a line that this server has left: takes its first jobs, `limit` at most, up to one whose time has not come. They hold the line by the
 * last of them, so each but that one ends without a look at the others. The first has its turn in any case.
 */
export function takeLine(executor: Executor, queue: string, key: string, limit: number): Promise<TakenJob[]> {
  return executor.query<TakenJob>(
    `WITH line AS (SELECT id, seq, due_at FROM jobs WHERE queue = $1 AND key = $2 AND state <> 'failed' ORDER BY seq LIMIT greatest($3::int, 1)),
     next AS (SELECT id, seq, $3 > 0 AND bool_and(due_at <= now()) OVER (ORDER BY seq) AS due FROM line),
     turn AS (SELECT id, due, seq < max(seq) OVER () AS followed FROM next WHERE due OR seq = (SELECT min(seq) FROM line)),
     told AS (UPDATE jobs SET state = CASE WHEN due THEN 'running' ELSE 'waiting' END, followed = turn.followed, runs = runs + due::int,
       lease_until = CASE WHEN due THEN now() + ${LEASE} END
     FROM turn WHERE jobs.id = turn.id AND state IN ('waiting', 'behind') RETURNING jobs.id, seq, queue, key, data, runs, failures, state)
     SELECT id, queue, key, data, runs, failures FROM told WHERE state = 'running' ORDER BY seq`,
    [queue, key, limit],
  );
}

/** The run failed: the job waits for that many seconds. */
export async function delayJob(executor: Executor, { id, runs }: TakenJob, seconds: number): Promise<void> {
  await executor.execute(
    `UPDATE jobs SET state = 'waiting', failures = failures + 1, lease_until = NULL, followed = false, due_at = now() + $3::float8 * interval '1 second' WHERE ${RUN}`,
    [id, runs, seconds],
  );
}

/** The run failed for the last time: the job is kept as failed; false when it is not this server's any more. */
export async function failJob(executor: Executor, { id, runs }: TakenJob, error: string): Promise<boolean> {
  const failed = await executor.execute(
    `UPDATE jobs SET state = 'failed', error = $3, lease_until = NULL, failed_at = now() WHERE ${RUN}`,
    [id, runs, error.replaceAll('\u0000', '').slice(0, MAX_ERROR)],
  );
  return failed === 1;
}

/** Jobs that were taken and not done, which is no failure of theirs, wait for another run; those that were not begun as if they had not been taken. */
export async function releaseJobs(executor: Executor, runs: readonly TakenJob[], begun: boolean): Promise<void> {
  if (runs.length === 0) return;
  await executor.execute(
    `UPDATE jobs SET state = 'waiting', lease_until = NULL, followed = false, runs = runs - $2 WHERE state = 'running' AND ${RUNS}`,
    [idsOf(runs), begun ? 0 : 1],
  );
}

/** Goes on with the runs; gives those that are still this server's. A job that it has lost and taken again has two: the later one is its. */
export async function renewLeases(executor: Executor, runs: readonly TakenJob[]): Promise<Set<TakenJob>> {
  if (runs.length === 0) return new Set();
  const rows = await executor.query<{ id: string; runs: number }>(
    `UPDATE jobs SET lease_until = now() + ${LEASE} WHERE state = 'running' AND ${RUNS} RETURNING id, runs`,
    [idsOf(runs)],
  );
  const kept = new Map(rows.map((row) => [row.id, row.runs]));
  return new Set(runs.filter((run) => kept.get(run.id) === run.runs));
}

/** Jobs whose server is silent wait again; all that run where nobody else can be running them. */
export function releaseSilent(executor: Executor, whose: 'silent' | 'all'): Promise<number> {
  const lapsed = whose === 'all' ? '' : 'AND lease_until < now()';
  return executor.execute(
    `UPDATE jobs SET state = 'waiting', lease_until = NULL, followed = false WHERE state = 'running' ${lapsed}`,
  );
}

/**
 * Gives lines their turn whose first job is `behind`. It was enqueued while the one before it was ending, or committed after one that came later:
 * neither transaction saw the other. The state is asked again because another server may have taken the job since the line was read.
 */
export async function wakeLines(executor: Executor): Promise<void> {
  await executor.execute(
    `UPDATE jobs SET state = 'waiting' WHERE state = 'behind' AND id IN (
       SELECT first.id FROM (SELECT DISTINCT queue, key FROM jobs WHERE state = 'behind') line CROSS JOIN LATERAL (
         SELECT id, state FROM jobs j WHERE j.queue = line.queue AND j.key = line.key AND state <> 'failed' ORDER BY seq LIMIT 1) first
       WHERE first.state = 'behind')`,
  );
}

/** Names of all queues that have jobs. */
export async function queuesWithJobs(executor: Executor): Promise<string[]> {
  const rows = await executor.query<{ queue: string }>('SELECT DISTINCT queue FROM jobs');
  return rows.map(({ queue }) => queue);
}

/** What waits in one queue waits in another from now on, in the same order. */
export async function moveJobs(executor: Executor, from: string, to: string): Promise<void> {
  await executor.execute("UPDATE jobs SET queue = $2 WHERE queue = $1 AND state <> 'running'", [from, to]);
}

/** Newest first. */
export async function failedJobs(executor: Executor, queue: string, limit: number): Promise<FailedJob[]> {
  const rows = await executor.query<{ id: string; data: string; runs: number; error: string; failed_at: Date }>(
    "SELECT id, data, runs, error, failed_at FROM jobs WHERE queue = $1 AND state = 'failed' ORDER BY failed_at DESC LIMIT $2",
    [queue, limit],
  );
  return rows.map(
    ({ id, data, runs: attempts, error, failed_at: failedAt }): FailedJob => ({
      id,
      data: JSON.parse(data),
      attempts,
      error,
      failedAt,
    }),
  );
}

/** A failed job waits again, behind those of its key that wait. */
export async function retryJob(executor: Executor, queue: string, id: string): Promise<void> {
  await executor.execute(
    `WITH failed AS (DELETE FROM jobs WHERE id = $1 AND queue = $2 AND state = 'failed' RETURNING id, queue, key, data, runs)
     INSERT INTO jobs (id, queue, key, data, runs) SELECT id, queue, key, data, runs FROM failed`,
    [id, queue],
  );
}

/** For a rule of retention: forgets failed jobs. */
export function forgetFailedJobs(executor: Executor): RetentionRule['forget'] {
  return (before, limit) =>
    executor.execute(
      "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE state = 'failed' AND failed_at < $1 LIMIT $2)",
      [new Date(before), limit],
    );
}

function idsOf(runs: readonly TakenJob[]): string {
  return JSON.stringify(runs.map(({ id, runs: run }) => [id, run]));
}
