import type { data } from '@agentplatform/contract';
import type { Executor } from '../../kernel/storage/index.ts';
import { list, number, object, record, type Shape, storedText, text, wire } from '../../kernel/stored-shape.ts';
import { storedPayload, storedVariables } from './event.ts';

/**
 * `QUEUED`: an entry of the server's jobs has it done (line-queues.ts). `HELD`: of a self-managed strategy, waiting for a trigger
 * (self-managed/held-store.ts). A finished job has no row.
 */
export type JobStatus = 'QUEUED' | 'HELD' | 'FAILED';

/** One batch of one session for one strategy: what is to be extracted from, and what has become of it. */
export interface ExtractionJob {
  id: string;
  memoryId: string;
  accountId: string;
  strategyId: string;
  actorId: string;
  sessionId: string;
  status: JobStatus;
  failureReason: string | undefined;
  /** The events of the batch and how many payload items each has. */
  events: { eventId: string; count: number }[];
  /** Ingested data, which is no event. */
  inline: InlineContent | undefined;
  variables: Record<string, string>;
  seq: number;
  createdAt: Date;
}

export interface InlineContent {
  at: number;
  payload: data.PayloadType[];
  metadata: Record<string, data.MetadataValue>;
}

const EVENTS = list(object({ eventId: text, count: number }));
const INLINE: Shape<InlineContent> = object({
  at: number,
  payload: storedPayload,
  metadata: record(wire<data.MetadataValue>()),
});

export type NewJob = Omit<ExtractionJob, 'seq' | 'failureReason'>;

export interface JobRow {
  id: string;
  memory_id: string;
  account_id: string;
  strategy_id: string;
  actor_id: string;
  session_id: string;
  status: JobStatus;
  failure_reason: string | null;
  event_ids: unknown;
  inline: string | null;
  variables: unknown;
  seq: number;
  created_at: Date;
}

export const JOB_COLUMNS =
  'id, memory_id, account_id, strategy_id, actor_id, session_id, status, failure_reason, event_ids, inline, variables, seq, created_at';

export async function addJob(executor: Executor, job: NewJob): Promise<void> {
  await executor.execute(
    `INSERT INTO memory_extraction_jobs (id, memory_id, account_id, strategy_id, actor_id, session_id, status, event_ids,
       inline, variables, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10::jsonb, $11)`,
    [
      job.id,
      job.memoryId,
      job.accountId,
      job.strategyId,
      job.actorId,
      job.sessionId,
      job.status,
      JSON.stringify(job.events),
      job.inline === undefined ? null : JSON.stringify(job.inline),
      JSON.stringify(job.variables),
      job.createdAt,
    ],
  );
}

/** Ends the job in the transaction that writes its results. False if the job has already ended: then the transaction must write nothing. */
export async function endJob(executor: Executor, id: string): Promise<boolean> {
  return (await executor.execute("DELETE FROM memory_extraction_jobs WHERE id = $1 AND status = 'QUEUED'", [id])) === 1;
}

/** Keeps the job as failed, for that reason, until someone starts it again. */
export async function giveUpJob(executor: Executor, id: string, reason: string): Promise<void> {
  await executor.execute(
    "UPDATE memory_extraction_jobs SET status = 'FAILED', failure_reason = $2 WHERE id = $1 AND status = 'QUEUED'",
    [id, reason.replaceAll('\u0000', '').slice(0, 2000)],
  );
}

/** A failed job of the memory waits again; undefined when there is none of that id. */
export async function requeueJob(executor: Executor, memoryId: string, id: string): Promise<ExtractionJob | undefined> {
  const [row] = await executor.query<JobRow>(
    `UPDATE memory_extraction_jobs SET status = 'QUEUED', failure_reason = NULL
     WHERE id = $1 AND memory_id = $2 AND status = 'FAILED' RETURNING ${JOB_COLUMNS}`,
    [id, memoryId],
  );
  return row && jobOf(row);
}

/** What jobs are keyed by: those of one session and strategy are done one after the other. */
export type Line = Pick<ExtractionJob, 'memoryId' | 'strategyId' | 'actorId' | 'sessionId'>;

/** One job in its line. */
export type Entry = Line & Pick<ExtractionJob, 'id'>;

/** A job that is to be done; undefined when it has ended. */
export async function queuedJob(executor: Executor, id: string): Promise<ExtractionJob | undefined> {
  const [row] = await executor.query<JobRow>(
    `SELECT ${JOB_COLUMNS} FROM memory_extraction_jobs WHERE id = $1 AND status = 'QUEUED'`,
    [id],
  );
  return row && jobOf(row);
}

export async function failedJobs(
  executor: Executor,
  memoryId: string,
  filter: data.ExtractionJobFilterInput,
  limit: number,
  after: number | undefined,
): Promise<ExtractionJob[]> {
  const params: unknown[] = [memoryId];
  const conditions = ["memory_id = $1 AND status = 'FAILED'"];
  const equal = (column: string, value: string | undefined): void => {
    if (value !== undefined) conditions.push(`${column} = $${params.push(value)}`);
  };
  equal('strategy_id', filter.strategyId);
  equal('session_id', filter.sessionId);
  equal('actor_id', filter.actorId);
  if (after !== undefined) conditions.push(`seq > $${params.push(after)}`);
  const rows = await executor.query<JobRow>(
    `SELECT ${JOB_COLUMNS} FROM memory_extraction_jobs WHERE ${conditions.join(' AND ')} ORDER BY seq LIMIT $${params.push(limit)}`,
    params,
  );
  return rows.map(jobOf);
}

export function jobOf(row: JobRow): ExtractionJob {
  return {
    id: row.id,
    memoryId: row.memory_id,
    accountId: row.account_id,
    strategyId: row.strategy_id,
    actorId: row.actor_id,
    sessionId: row.session_id,
    status: row.status,
    failureReason: row.failure_reason ?? undefined,
    events: EVENTS(row.event_ids, 'event_ids'),
    inline: row.inline === null ? undefined : storedText(INLINE, row.inline),
    variables: storedVariables(row.variables, 'variables'),
    seq: row.seq,
    createdAt: row.created_at,
  };
}
