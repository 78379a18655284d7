import type { Executor, RetentionRule } from '../storage/index.ts';
import type { FailedJob } from './job-definition.ts';

/** A job that this server has taken; `runs` tells its run from those before and after it. */
export interface TakenJob {
  id: string;
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

export async function addJob(executor: Executor, { queue, data, key, startAfter }: NewJob): Promise<string> {
  const [row] = await executor.query<{ id: string }>(
    'INSERT INTO jobs (queue, key, data, due_at) VALUES ($1, $2, $3, coalesce($4, now())) RETURNING id',
    [queue, key ?? null, data, startAfter ?? null],
  );
  if (!row) throw new Error('the database kept no job');
  return row.id;
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
     FROM next WHERE jobs.id = next.id RETURNING jobs.id, data, runs, failures`,
    [queue, limit],
  );
}

/** The run is over and so is the job. */
export async function endJob(executor: Executor, { id, runs }: TakenJob): Promise<void> {
  await executor.execute(`DELETE FROM jobs WHERE ${RUN}`, [id, runs]);
}

/** The run failed: the job waits for that many seconds, or is kept as failed. */
export async function failJob(
  executor: Executor,
  { id, runs }: TakenJob,
  error: string,
  delay: number | undefined,
): Promise<void> {
  await executor.execute(
    `UPDATE jobs SET failures = failures + 1, error = $3, lease_until = NULL, state = CASE WHEN $4::float8 IS NULL THEN 'failed' ELSE 'waiting' END,
       due_at = now() + coalesce($4::float8, 0) * interval '1 second', failed_at = CASE WHEN $4::float8 IS NULL THEN now() END WHERE ${RUN}`,
    [id, runs, error.replaceAll('\u0000', '').slice(0, MAX_ERROR), delay ?? null],
  );
}

/** The run was cut short, which is no failure of the job: it waits for another. */
export async function releaseJob(executor: Executor, { id, runs }: TakenJob): Promise<void> {
  await executor.execute(`UPDATE jobs SET state = 'waiting', lease_until = NULL WHERE ${RUN}`, [id, runs]);
}

/** Goes on with the runs; gives those that are still this server's. */
export async function renewLeases(executor: Executor, runs: readonly TakenJob[]): Promise<Set<TakenJob>> {
  if (runs.length === 0) return new Set();
  const rows = await executor.query<{ id: string; runs: number }>(
    `UPDATE jobs SET lease_until = now() + ${LEASE} WHERE state = 'running'
       AND (id, runs) IN (SELECT r->>0, (r->>1)::int FROM jsonb_array_elements($1::jsonb) r) RETURNING id, runs`,
    [JSON.stringify(runs.map((run) => [run.id, run.runs]))],
  );
  const kept = new Set(rows.map((row) => row.id));
  return new Set(runs.filter(({ id }) => kept.has(id)));
}

/** Jobs whose server is silent wait again; all that run where nobody else can be running them. */
export function releaseSilent(executor: Executor, whose: 'silent' | 'all'): Promise<number> {
  const lapsed = whose === 'all' ? '' : 'AND lease_until < now()';
  return executor.execute(`UPDATE jobs SET state = 'waiting', lease_until = NULL WHERE state = 'running' ${lapsed}`);
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
  return rows.map(({ id, data, runs: attempts, error, failed_at: failedAt }) => ({
    id,
    data: JSON.parse(data),
    attempts,
    error,
    failedAt,
  }));
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
