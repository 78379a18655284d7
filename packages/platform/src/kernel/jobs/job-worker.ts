import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { type Database, DatabaseError } from '../storage/index.ts';
import { untilAborted } from '../until-aborted.ts';
import type { JobDefinition, JobRun } from './job-definition.ts';
import { delayJob, endJob, failJob, releaseJob, type TakenJob, takeJobs } from './job-store.ts';

export interface JobWorkerDeps {
  database: Database;
  clock: Clock;
  log: Logger;
}

interface Running {
  job: TakenJob;
  /** Ends the run for nothing that the job is to blame for. */
  cut: AbortController;
  ended: Promise<void>;
}

const DEFAULTS = { retries: 5, retryDelay: 1, retryDelayMax: 300, concurrency: 4, timeout: 900 };
/** Jobs of one key that are run one after the other before other keys have their turn. */
const IN_A_ROW = 100;
/** SQLSTATE: another server has taken a job of the same key at the same moment. */
const UNIQUE_VIOLATION = '23505';

/** Runs the jobs of one queue in this server, as many at once as it may. */
export class JobWorker {
  readonly #deps: JobWorkerDeps;
  readonly #queue: string;
  readonly #definition: JobDefinition<object> & typeof DEFAULTS;
  readonly #running = new Set<Running>();
  #open = false;
  #busy = false;
  #again = false;
  #looking: Promise<void> = Promise.resolve();

  constructor(queue: string, definition: JobDefinition<object>, deps: JobWorkerDeps) {
    this.#queue = queue;
    this.#definition = { ...DEFAULTS, ...definition };
    this.#deps = deps;
  }

  get running(): TakenJob[] {
    return [...this.#running].map(({ job }) => job);
  }

  start(): void {
    this.#open = true;
    this.look();
  }

  /** Takes what waits; one look at a time, and another one after it when asked meanwhile. */
  look(): void {
    this.#again = true;
    if (this.#open && !this.#busy) this.#looking = this.#look();
  }

  /** Takes nothing more. */
  async close(): Promise<void> {
    this.#open = false;
    await this.#looking;
  }

  /** Ends the runs of these jobs; they fail nothing by it. */
  cut(jobs: readonly TakenJob[], reason: Error): void {
    for (const { job, cut } of this.#running) if (jobs.includes(job)) cut.abort(reason);
  }

  /** Resolves when nothing runs any more. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all([...this.#running].map(({ ended }) => ended));
  }

  async #look(): Promise<void> {
    const { database, log } = this.#deps;
    this.#busy = true;
    try {
      while (this.#open && this.#again) {
        this.#again = false;
        const free = this.#definition.concurrency - this.#running.size;
        // Whatever ends looks again.
        if (free <= 0) return;
        for (const job of await takeJobs(database, this.#queue, free)) this.#begin(job);
      }
    } catch (error) {
      if (error instanceof DatabaseError && error.code === UNIQUE_VIOLATION) return;
      log.warn({ err: error, job: this.#queue }, 'no jobs could be taken; it is tried again');
    } finally {
      this.#busy = false;
    }
  }

  #begin(job: TakenJob, inRow = 1): void {
    const cut = new AbortController();
    const running: Running = { job, cut, ended: Promise.resolve() };
    this.#running.add(running);
    running.ended = this.#take(job, cut.signal, inRow < IN_A_ROW).then((next) => {
      this.#running.delete(running);
      if (next) this.#begin(next, inRow + 1);
      else this.look();
    });
  }

  /** Gives the next job of its key, if that is taken already. Never rejects: what cannot be noted lapses with the lease, and is run again. */
  async #take(job: TakenJob, cut: AbortSignal, on: boolean): Promise<TakenJob | undefined> {
    const { database, clock, log: parent } = this.#deps;
    const log = parent.child({ job: this.#queue, jobId: job.id, attempt: job.runs });
    const late = new AbortController();
    const seconds = this.#definition.timeout;
    const cancel = clock.after(seconds * 1000, () => late.abort(new Error(`the run took longer than ${seconds} s`)));
    const signal = AbortSignal.any([cut, late.signal]);
    try {
      const failure = await this.#run(job, signal, log);
      if (failure === undefined) return await endJob(database, job, on && this.#open);
      if (cut.aborted) await releaseJob(database, job);
      else await this.#fail(job, failure, log);
    } catch (error) {
      log.warn({ err: error }, 'the end of a job could not be noted; it is run again');
    } finally {
      cancel();
    }
    return undefined;
  }

  async #run(job: TakenJob, signal: AbortSignal, log: Logger): Promise<Failure | undefined> {
    let run: JobRun<object> | undefined;
    try {
      const data = this.#definition.parse(JSON.parse(job.data));
      run = { id: job.id, data, attempt: job.runs, signal, log };
      await untilAborted(this.#definition.run(run), signal);
      return undefined;
    } catch (error) {
      return { error, run };
    }
  }

  async #fail(job: TakenJob, { error, run }: Failure, log: Logger): Promise<void> {
    const { database } = this.#deps;
    const { retries, retryDelay, retryDelayMax } = this.#definition;
    const message = error instanceof Error ? error.message : String(error);
    if (job.failures < retries) {
      log.warn({ err: error }, 'a job failed; it is tried again');
      return delayJob(database, job, Math.min(retryDelay * 2 ** job.failures, retryDelayMax));
    }
    log.error({ err: error }, 'a job failed for the last time');
    if (!run || !this.#definition.giveUp) return failJob(database, job, message);
    await this.#definition.giveUp(run, error);
    await endJob(database, job);
  }
}

interface Failure {
  error: unknown;
  /** Absent when its data could not be read. */
  run: JobRun<object> | undefined;
}
