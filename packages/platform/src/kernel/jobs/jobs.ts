import type { Logger } from 'pino';
import { type Clock, systemClock } from '../clock.ts';
import { every } from '../every.ts';
import type { Database } from '../storage/index.ts';
import { NO_TRACER, type Tracer } from '../telemetry/index.ts';
import type { EnqueueOptions, FailedJob, JobDefinition } from './job-definition.ts';
import {
  addJob,
  failedJobs,
  moveJobs,
  queuesWithJobs,
  releaseSilent,
  renewLeases,
  retryJob,
  wakeLines,
} from './job-store.ts';
import { JobWorker } from './job-worker.ts';

/**
 * Background work that survives the server. A job is run at least once: it is done when its run returns; a run that
 * throws or takes too long is tried again, up to `retries` times, and then kept as failed. One that a crash cut short is run again:
 * a crash is noticed at the next start (embedded database) or within about twenty seconds (PostgreSQL, by the server's lease on the job).
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
  /** Resolves with the job's id. Data must be JSON. */
  enqueue(data: Data, options?: EnqueueOptions): Promise<string>;
  /** Has the queue looked at now rather than at its next turn: for jobs that a transaction has brought. */
  look(): void;
  /** Jobs that have used up their attempts, newest first. */
  listFailed(limit?: number): Promise<FailedJob[]>;
  /** Runs a failed job again. */
  retry(id: string): Promise<void>;
}

export interface JobsOptions {
  database: Database;
  log: Logger;
  clock?: Clock;
  /** Absent where nothing is traced. */
  tracer?: Tracer | undefined;
  /** How often to look for jobs that another server brought, or whose time has come, in seconds. */
  pollSeconds?: number;
}

const POLL_SECONDS = 2;
/** A third of the lease. */
const RENEW_MS = 5_000;

export function createJobs(options: JobsOptions): Jobs {
  const { database, log, clock = systemClock, tracer = NO_TRACER, pollSeconds = POLL_SECONDS } = options;
  const workers = new Map<string, JobWorker>();
  const definitions = new Map<string, JobDefinition<object>>();
  let stopTimers: (() => Promise<void>)[] | undefined;

  const lookEverywhere = async (): Promise<void> => {
    for (const worker of workers.values()) worker.look();
  };

  const keepLeases = async (): Promise<void> => {
    const runs = [...workers.values()].flatMap((worker) => worker.running);
    const kept = await renewLeases(database, runs);
    const lost = runs.filter((run) => !kept.has(run));
    for (const worker of workers.values()) worker.cut(lost, new Error('another run has the job'));
    const released = await releaseSilent(database, 'silent');
    if (released > 0) log.info({ count: released }, 'jobs of a server that is silent are run again');
    await wakeLines(database);
  };

  /** The data directory is locked, so on the embedded database nobody else can be running them. */
  const takeUp = async (): Promise<void> => {
    const released = await releaseSilent(database, database.kind === 'pglite' ? 'all' : 'silent');
    if (released > 0) log.info({ count: released }, 'jobs that the last end of the server cut short are run again');
    for (const left of await queuesWithJobs(database)) {
      if (workers.has(left)) continue;
      const [heir] = [...definitions].find(([, definition]) => definition.inherits?.(left)) ?? [];
      if (heir !== undefined) await moveJobs(database, left, heir);
    }
    await wakeLines(database);
  };

  return {
    define: <Data extends object>(name: string, definition: JobDefinition<Data>): JobQueue<Data> => {
      if (stopTimers) throw new Error(`the job ${name} was defined after the start`);
      if (workers.has(name)) throw new Error(`the job ${name} is defined twice`);
      const erased = erase(definition);
      const worker = new JobWorker(name, erased, { database, clock, log, tracer });
      definitions.set(name, erased);
      workers.set(name, worker);
      return {
        enqueue: async (data, { key, startAfter, within } = {}) => {
          const id = await addJob(within ?? database, { queue: name, data: JSON.stringify(data), key, startAfter });
          if (!within) worker.look();
          return id;
        },
        look: () => worker.look(),
        listFailed: (limit = 100) => failedJobs(database, name, limit),
        retry: async (id) => {
          await retryJob(database, name, id);
          worker.look();
        },
      };
    },
    start: async () => {
      stopTimers = [];
      await takeUp();
      stopTimers = [
        every(clock, RENEW_MS, 'renew the leases of jobs', keepLeases, log),
        every(clock, pollSeconds * 1000, 'look for jobs', lookEverywhere, log),
      ];
      for (const worker of workers.values()) worker.start();
    },
    stop: async (graceMs = 10_000) => {
      if (!stopTimers) return;
      const all = [...workers.values()];
      await Promise.all(all.map((worker) => worker.close()));
      const cancel = clock.after(graceMs, () => {
        for (const worker of all) worker.cut(worker.running, new Error('the server stops'));
      });
      await Promise.all(all.map((worker) => worker.idle()));
      cancel();
      // Leases go on until the last run has ended.
      for (const stopTimer of stopTimers) await stopTimer();
    },
  };
}

/** The type of the data is known to `parse` alone from here on. */
function erase<Data extends object>(definition: JobDefinition<Data>): JobDefinition<object> {
  const { giveUp } = definition;
  return {
    ...definition,
    run: (job) => definition.run({ ...job, data: definition.parse(job.data) }),
    parse: (data) => definition.parse(data),
    ...(giveUp && { giveUp: (job, error) => giveUp({ ...job, data: definition.parse(job.data) }, error) }),
  };
}
