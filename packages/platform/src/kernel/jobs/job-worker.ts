import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { type Database, DatabaseError } from '../storage/index.ts';
import { errorCodeOf, type Tracer } from '../telemetry/index.ts';
import { untilAborted } from '../until-aborted.ts';
import type { JobDefinition, JobRun } from './job-definition.ts';
import { delayJob, endJob, failJob, releaseJobs, type TakenJob, takeJobs, takeLine } from './job-store.ts';

export interface JobWorkerDeps {
  database: Database;
  clock: Clock;
  log: Logger;
  tracer: Tracer;
}

interface Running {
  job: TakenJob;
  /** Taken with it, to be run after it. */
  ahead: readonly TakenJob[];
  /** Jobs of its key that were run one after the other, it among them. */
  inRow: number;
  /** Ends the run for nothing that the job is to blame for. */
  cut: AbortController;
  ended: Promise<void>;
}

const DEFAULTS = { retries: 5, retryDelay: 1, retryDelayMax: 300, concurrency: 4, timeout: 900 };
/** Jobs of one key that are run one after the other before other keys have their turn. */
const IN_A_ROW = 100;
/** Jobs of one key that are taken with one statement. */
const AHEAD = 20;
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
    return [...this.#running].flatMap(({ job, ahead }) => [job, ...ahead]);
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
    for (const { job, ahead, cut } of this.#running)
      if ([job, ...ahead].some((one) => jobs.includes(one))) cut.abort(reason);
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
        const taken = await takeJobs(database, this.#queue, free).catch(noneIfTaken);
        // The others that were chosen with it are still there.
        this.#again ||= taken === undefined;
        for (const job of taken ?? []) this.#begin([job]);
      }
    } catch (error) {
      log.warn({ err: error, job: this.#queue }, 'no jobs could be taken; it is tried again');
    } finally {
      this.#busy = false;
    }
  }

  #begin([job, ...ahead]: readonly TakenJob[], inRow = 1): void {
    // Whatever ends looks again.
    if (!job) {
      this.look();
      return;
    }
    const running: Running = { job, ahead, inRow, cut: new AbortController(), ended: Promise.resolve() };
    this.#running.add(running);
    running.ended = this.#take(running).then((next) => {
      this.#running.delete(running);
      this.#begin(next, inRow + 1);
    });
  }

  /** Gives the jobs of its key that this server goes on with. Never rejects: what cannot be noted lapses with the lease, and is run again. */
  async #take(running: Running): Promise<readonly TakenJob[]> {
    const { clock, log: parent } = this.#deps;
    const { job, cut } = running;
    const log = parent.child({ job: this.#queue, jobId: job.id, attempt: job.runs });
    const late = new AbortController();
    const seconds = this.#definition.timeout;
    const cancel = clock.after(seconds * 1000, () => late.abort(new Error(`the run took longer than ${seconds} s`)));
    try {
      const outcome = await this.#run(job, AbortSignal.any([cut.signal, late.signal]), log);
      const ended = outcome.ended || (await this.#end(job, outcome, cut.signal, log));
      return await this.#goOn(running, ended && this.#open && !cut.signal.aborted);
    } catch (error) {
      log.warn({ err: error }, 'what became of a job could not be noted; what was not done is run again');
    } finally {
      cancel();
    }
    return [];
  }

  async #run(job: TakenJob, signal: AbortSignal, log: Logger): Promise<Outcome> {
    const { tracer } = this.#deps;
    const outcome: Outcome = { ended: false, run: undefined };
    const span = tracer.work(`job ${this.#queue}`);
    span.set('messaging.message.id', job.id);
    span.set('agentplatform.job.attempt', job.runs);
    try {
      const data = this.#definition.parse(JSON.parse(job.data));
      let ended = false;
      const end: JobRun<object>['end'] = async (within) => {
        ended = await endJob(within, job);
        return ended;
      };
      const run = { id: job.id, data, attempt: job.runs, signal, span, log, end };
      outcome.run = run;
      await untilAborted(
        tracer.during(span, async () => this.#definition.run(run)),
        signal,
      );
      outcome.ended = ended;
    } catch (error) {
      span.fail(errorCodeOf(error));
      outcome.failure = { error };
    } finally {
      span.end();
    }
    return outcome;
  }

  /** False when the job waits again, or is not this server's any more. */
  async #end(job: TakenJob, { failure, run }: Outcome, cut: AbortSignal, log: Logger): Promise<boolean> {
    const { database } = this.#deps;
    if (!failure) return endJob(database, job);
    if (!cut.aborted) return this.#fail(job, failure.error, run, log);
    await releaseJobs(database, [job], true);
    return false;
  }

  /** The next of its line, with `on`; otherwise they are left to whoever looks next. */
  async #goOn({ job: { key }, ahead, inRow }: Running, on: boolean): Promise<readonly TakenJob[]> {
    const { database } = this.#deps;
    if (on && ahead.length > 0) return ahead;
    await releaseJobs(database, ahead, false);
    if (key === null) return [];
    const next = await takeLine(database, this.#queue, key, on && inRow < IN_A_ROW ? AHEAD : 0).catch(noneIfTaken);
    return next ?? [];
  }

  /** Whether it was the last attempt. */
  async #fail(job: TakenJob, error: unknown, run: JobRun<object> | undefined, log: Logger): Promise<boolean> {
    const { database } = this.#deps;
    const { retries, retryDelay, retryDelayMax } = this.#definition;
    const message = error instanceof Error ? error.message : String(error);
    if (job.failures < retries) {
      log.warn({ err: error }, 'a job failed; it is tried again');
      await delayJob(database, job, Math.min(retryDelay * 2 ** job.failures, retryDelayMax));
      return false;
    }
    log.error({ err: error }, 'a job failed for the last time');
    if (!run || !this.#definition.giveUp) return failJob(database, job, message);
    await this.#definition.giveUp(run, error);
    return endJob(database, job);
  }
}

interface Outcome {
  /** The run has ended the job itself. */
  ended: boolean;
  /** Absent when the job's data could not be read. */
  run: JobRun<object> | undefined;
  failure?: { error: unknown };
}

/** For taking jobs, when another server has taken one of the same key at the same moment. */
function noneIfTaken(error: unknown): undefined {
  if (error instanceof DatabaseError && error.code === UNIQUE_VIOLATION) return undefined;
  throw error;
}
