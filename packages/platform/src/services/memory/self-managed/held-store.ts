import type { Executor } from '../../../kernel/storage/index.ts';
import { storedVariables } from '../event.ts';
import { addJob, JOB_COLUMNS, type JobRow, jobOf, type NewJob } from '../extraction-job-store.ts';
import type { Held } from './triggers.ts';

/** What waits together and is delivered together. */
export interface HeldGroup {
  memoryId: string;
  strategyId: string;
  actorId: string;
  sessionId: string;
  variables: Record<string, string>;
}

const GROUP = 'memory_id = $1 AND strategy_id = $2 AND actor_id = $3 AND session_id = $4 AND variables = $5::jsonb';

function values({ memoryId, strategyId, actorId, sessionId, variables }: HeldGroup): unknown[] {
  return [memoryId, strategyId, actorId, sessionId, JSON.stringify(variables)];
}

/** Keeps a batch that waits for a trigger; gives what waits in its group now. `dueAt`: when idle time will be over. */
export async function holdJob(tx: Executor, job: NewJob, held: Held, dueAt: Date | undefined): Promise<Held> {
  await addJob(tx, { ...job, status: 'HELD' });
  await tx.execute('UPDATE memory_extraction_jobs SET messages = $2, tokens = $3, due_at = $4 WHERE id = $1', [
    job.id,
    held.messages,
    held.tokens,
    dueAt ?? null,
  ]);
  const [sum] = await tx.query<{ messages: number; tokens: number }>(
    `SELECT sum(messages)::int AS messages, sum(tokens)::float8 AS tokens FROM memory_extraction_jobs WHERE ${GROUP} AND status = 'HELD'`,
    values(job),
  );
  return sum ?? held;
}

/** Makes one job, to be queued, of all that waits in a group; gives its id, or undefined when another server was faster. */
export async function releaseGroup(tx: Executor, group: HeldGroup): Promise<string | undefined> {
  const rows = await tx.query<JobRow>(
    `SELECT ${JOB_COLUMNS} FROM memory_extraction_jobs WHERE ${GROUP} AND status = 'HELD' ORDER BY seq FOR UPDATE SKIP LOCKED`,
    values(group),
  );
  const [first, ...others] = rows.map(jobOf);
  if (!first) return undefined;
  const events = [first, ...others].flatMap((job) => job.events);
  await tx.execute("UPDATE memory_extraction_jobs SET status = 'QUEUED', event_ids = $2::jsonb WHERE id = $1", [
    first.id,
    JSON.stringify(events),
  ]);
  await tx.execute('DELETE FROM memory_extraction_jobs WHERE id IN (SELECT jsonb_array_elements_text($1::jsonb))', [
    JSON.stringify(others.map(({ id }) => id)),
  ]);
  return first.id;
}

/** Groups to which nothing came for as long as their strategy waits. */
export async function idleGroups(executor: Executor, now: Date, limit: number): Promise<HeldGroup[]> {
  const rows = await executor.query<JobRow>(
    `SELECT memory_id, strategy_id, actor_id, session_id, variables FROM memory_extraction_jobs WHERE status = 'HELD'
     GROUP BY 1, 2, 3, 4, 5 HAVING max(due_at) <= $1 LIMIT $2`,
    [now, limit],
  );
  return rows.map((row) => ({
    memoryId: row.memory_id,
    strategyId: row.strategy_id,
    actorId: row.actor_id,
    sessionId: row.session_id,
    variables: storedVariables(row.variables, 'variables'),
  }));
}

/** When the next group will have been idle for long enough; undefined when none will. */
export async function nextIdle(executor: Executor): Promise<Date | undefined> {
  const [row] = await executor.query<{ due_at: Date | null }>(
    `SELECT min(due_at) AS due_at FROM (SELECT max(due_at) AS due_at FROM memory_extraction_jobs WHERE status = 'HELD'
     GROUP BY memory_id, strategy_id, actor_id, session_id, variables) g`,
  );
  return row?.due_at ?? undefined;
}
