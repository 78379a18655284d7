import type { Logger } from 'pino';
import type { Span } from '../telemetry/index.ts';

/** One run of a job. */
export interface JobRun<Data> {
  id: string;
  data: Data;
  /** 1 at the first run. */
  attempt: number;
  /** Aborts when the run has taken too long, or when the server stops and the grace is over. */
  signal: AbortSignal;
  /** Of this run; what it has others do becomes a part of it. */
  span: Span;
  log: Logger;
}

export interface JobDefinition<Data extends object> {
  /** Reads the data as it was stored; throws when it is of no known shape (the run then fails). */
  parse(data: unknown): Data;
  /** Runs at least once for each job: a run that a crash cut short is run again, so its effects must bear repetition. */
  run(job: JobRun<Data>): Promise<void>;
  /** Further attempts after the first, for failures and crashes alike. */
  retries?: number;
  /** Seconds before the second attempt; it doubles with each further one. */
  retryDelay?: number;
  /** Longest delay between two attempts, in seconds. */
  retryDelayMax?: number;
  /** Runs at once in this server. */
  concurrency?: number;
  /** Longest run, in seconds. */
  timeout?: number;
  /**
   * What `key` at `enqueue` means. `exclusive`: while a job of that key waits or runs, another is not taken.
   * `serial`: all are taken, and those of one key run one at a time. It cannot be changed once the queue exists.
   */
  keyed?: 'exclusive' | 'serial';
}

export interface EnqueueOptions {
  /** See `JobDefinition.keyed`. */
  key?: string;
  /** Not before this moment. */
  startAfter?: Date;
  /** The job exists only if this transaction commits. */
  within?: import('../storage/index.ts').Executor;
}

export interface FailedJob {
  id: string;
  data: unknown;
  attempts: number;
  error: string;
  failedAt: Date;
}
