import { type JobWithMetadata, PgBoss } from 'pg-boss';
import type { Logger } from 'pino';
import type { Database } from '../storage/index.ts';
import { errorCodeOf, NO_TRACER, type Tracer } from '../telemetry/index.ts';
import { bossDatabase } from './boss-database.ts';
import type { EnqueueOptions, FailedJob, JobDefinition } from './job-definition.ts';

/**
 * Background work that survives the server. A job is run at least once: it is done when its run returns; a run that
 * throws, takes too long or is cut short by a crash is run again, up to `retries` times, and then kept as failed.
 * A crash is noticed at the next start (embedded database) or within about fifteen seconds (PostgreSQL, by heartbeat).
 */
export interface Jobs {
  /** Declares a kind of job; before `start`. */
  define<Data extends object>(name: string, definition: JobDefinition<Data>): JobQueue<Data>;
  /** Begins to run jobs, first those that an earlier life of the server left unfinished. */
  start(): Promise<void>;
  /** Takes no more jobs, waits up to `graceMs` for the running ones; what is then cut short is run again later. */
  stop(graceMs?: number): Promise<void>;
}

/** One kind of job. */
export interface JobQueue<Data extends object> {
  /** The job's id, or undefined when a job of that key is there already (`keyed: 'exclusive'`). Data must be JSON. */
  enqueue(data: Data, options?: EnqueueOptions): Promise<string | undefined>;
  /** Jobs that have used up their attempts, newest first. */
  listFailed(limit?: number): Promise<FailedJob[]>;
  /** Runs a failed job again. */
  retry(id: string): Promise<void>;
}

export interface JobsOptions {
  database: Database;
  log: Logger;
  /** Absent where nothing is traced. */
  tracer?: Tracer | undefined;
  /** How often to look for jobs that another server or a transaction brought, or whose time has come, in seconds (0.5 at least). */
  pollSeconds?: number;
}

const DEFAULTS = { retries: 5, retryDelay: 1, retryDelayMax: 300, concurrency: 4, timeout: 900 };
/** The least that pg-boss allows. */
const HEARTBEAT_SECONDS = 10;
const SUPERVISE_SECONDS = 5;
const POLL_SECONDS = 2;
const SCHEMA = 'pgboss';

interface Defined {
  name: string;
  definition: JobDefinition<object>;
  workers: string[];
}

export function createJobs(options: JobsOptions): Jobs {
  const { database, log, tracer = NO_TRACER } = options;
  const boss = new PgBoss({
    db: bossDatabase(database),
    backend: database.kind,
    schema: SCHEMA,
    schedule: false,
    superviseIntervalSeconds: SUPERVISE_SECONDS,
    monitorIntervalSeconds: SUPERVISE_SECONDS,
    reindex: database.kind === 'postgres',
  });
  boss.on('error', (err) => log.warn({ err }, 'the job queue failed; it is tried again'));
  boss.on('warning', (warning) => log.debug({ warning }, 'the job queue warns'));
  const queues = new Map<string, Defined>();
  const stopping = new AbortController();
  let started = false;

  const runOne = async (queue: Defined, job: JobWithMetadata<object>): Promise<void> => {
    const attempt = job.retryCount + 1;
    const childLog = log.child({ job: queue.name, jobId: job.id, attempt });
    const signal = AbortSignal.any([job.signal, stopping.signal]);
    const span = tracer.work(`job ${queue.name}`);
    span.set('messaging.message.id', job.id);
    span.set('agentplatform.job.attempt', attempt);
    try {
      await tracer.during(span, async () =>
        queue.definition.run({
          id: job.id,
          data: queue.definition.parse(job.data),
          attempt,
          signal,
          span,
          log: childLog,
        }),
      );
    } catch (error) {
      span.fail(errorCodeOf(error));
      const last = job.retryCount >= job.retryLimit;
      childLog[last ? 'error' : 'warn'](
        { err: error },
        last ? 'a job failed for the last time' : 'a job failed; it is tried again',
      );
      throw error;
    } finally {
      span.end();
    }
  };

  const startQueue = async (queue: Defined): Promise<void> => {
    const settings = { ...DEFAULTS, ...queue.definition };
    const queueOptions = {
      retryLimit: settings.retries,
      retryDelay: settings.retryDelay,
      retryBackoff: true,
      retryDelayMax: settings.retryDelayMax,
      expireInSeconds: settings.timeout,
      heartbeatSeconds: HEARTBEAT_SECONDS,
    };
    await boss.createQueue(queue.name, { ...queueOptions, policy: policyOf(queue.definition) });
    await boss.updateQueue(queue.name, queueOptions);
  };

  const work = async (queue: Defined): Promise<void> => {
    const localConcurrency = queue.definition.concurrency ?? DEFAULTS.concurrency;
    const worker = await boss.work<
      object,
      void,
      { includeMetadata: true; pollingIntervalSeconds: number; localConcurrency: number }
    >(
      queue.name,
      { includeMetadata: true, pollingIntervalSeconds: options.pollSeconds ?? POLL_SECONDS, localConcurrency },
      async (jobs) => {
        try {
          for (const job of jobs) await runOne(queue, job);
        } finally {
          // What waits behind this job is begun at once; a worker would otherwise look again at its next poll only.
          for (const id of queue.workers) boss.notifyWorker(id);
        }
      },
    );
    queue.workers.push(worker);
  };

  /** The data directory is locked, so on the embedded database nobody else can be running them. */
  const releaseOrphans = async (): Promise<void> => {
    if (database.kind !== 'pglite') return;
    const rows = await database.query<{ id: string; name: string }>(
      `SELECT id, name FROM ${SCHEMA}.job WHERE state = 'active'`,
    );
    for (const { id, name } of rows) await boss.fail(name, id, { message: 'the server ended during this run' });
    if (rows.length > 0)
      log.info({ count: rows.length }, 'jobs that the last end of the server cut short are run again');
  };

  const queueOf = <Data extends object>(queue: Defined): JobQueue<Data> => ({
    enqueue: async (data, { key, startAfter, within } = {}) => {
      const db = within && bossDatabase(within);
      const id = await boss.send(queue.name, data, { singletonKey: key, startAfter, ...(db && { db }) });
      // Otherwise the worker would find it at its next look only.
      if (id && !within && !startAfter) for (const worker of queue.workers) boss.notifyWorker(worker);
      return id ?? undefined;
    },
    listFailed: async (limit = 100) => {
      const rows = await database.query<FailedRow>(
        `SELECT id, data, retry_count, output, completed_on FROM ${SCHEMA}.job
         WHERE name = $1 AND state = 'failed' ORDER BY completed_on DESC LIMIT $2`,
        [queue.name, limit],
      );
      return rows.map((row) => ({
        id: row.id,
        data: row.data,
        attempts: row.retry_count + 1,
        error: messageOf(row.output),
        failedAt: row.completed_on,
      }));
    },
    retry: async (id) => {
      await boss.retry(queue.name, id);
      for (const worker of queue.workers) boss.notifyWorker(worker);
    },
  });

  return {
    define: (name, definition) => {
      if (started) throw new Error(`the job ${name} was defined after the start`);
      if (queues.has(name)) throw new Error(`the job ${name} is defined twice`);
      const queue: Defined = { name, workers: [], definition: erase(definition) };
      queues.set(name, queue);
      return queueOf(queue);
    },
    start: async () => {
      started = true;
      await boss.start();
      for (const queue of queues.values()) await startQueue(queue);
      await releaseOrphans();
      for (const queue of queues.values()) await work(queue);
    },
    stop: async (graceMs = 10_000) => {
      if (!started) return;
      const abort = setTimeout(() => stopping.abort(new Error('the server stops')), graceMs);
      await boss.stop({ graceful: true, timeout: graceMs + 1_000 });
      clearTimeout(abort);
    },
  };
}

interface FailedRow {
  id: string;
  data: unknown;
  retry_count: number;
  output: unknown;
  completed_on: Date;
}

/** The type of the data is known to `parse` alone from here on. */
function erase<Data extends object>(definition: JobDefinition<Data>): JobDefinition<object> {
  return {
    ...definition,
    run: (job) => definition.run({ ...job, data: definition.parse(job.data) }),
    parse: (data) => definition.parse(data),
  };
}

function policyOf(definition: JobDefinition<object>): string {
  if (definition.keyed === 'exclusive') return 'exclusive';
  return definition.keyed === 'serial' ? 'singleton' : 'standard';
}

function messageOf(output: unknown): string {
  if (typeof output !== 'object' || output === null) return String(output);
  if ('message' in output) return String(output.message);
  return 'value' in output ? messageOf(output.value) : JSON.stringify(output);
}
