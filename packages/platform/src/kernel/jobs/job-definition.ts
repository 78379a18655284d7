import type { Logger } from 'pino';
import type { Executor } from '../storage/index.ts';
import type { Span } from '../telemetry/index.ts';

/** One run of a job. */
export interface JobRun<Data> {
  id: string;
  data: Data;
  /** 1 at the first run; more after the end of a server that had taken the job, also when it had not begun it. */
  attempt: number;
  /** Aborts when the run has taken too long, when its job is another server's by now, or when the server stops and the grace is over. */
  signal: AbortSignal;
  /** Of this run; what it has others do becomes a part of it. */
  span: Span;
  log: Logger;
  /**
   * Ends the job within the transaction that holds its effects, so that they happen once; false when it is not this server's any more, and then nothing
   * may happen. A run that calls it must throw when the transaction fails. A job whose run does not call it ends after the run.
   */
  end(within: Executor): Promise<boolean>;
}

export interface JobDefinition<Data extends object> {
  /** Reads the data as it was stored; throws when it is of no known shape (the run then fails). */
  parse(data: unknown): Data;
  /** Runs at least once for each job: a run that a crash cut short is run again, so its effects must bear repetition. */
  run(job: JobRun<Data>): Promise<void>;
  /** Takes over a job that has used up its attempts, and may be called again for it; absent: the queue keeps it as failed. */
  giveUp?(job: JobRun<Data>, error: unknown): Promise<void>;
  /** Further attempts after the first that failed. Runs that an end of the server cut short do not count. */
  retries?: number;
  /** Seconds before the second attempt; it doubles with each further one. */
  retryDelay?: number;
  /** Longest delay between two attempts, in seconds. */
  retryDelayMax?: number;
  /** Runs at once in this server. */
  concurrency?: number;
  /** Longest run, in seconds. */
  timeout?: number;
  /** Whether it takes the jobs of a queue of that name which nobody defines any more; asked at the start. */
  inherits?(queue: string): boolean;
}

export interface EnqueueOptions {
  /** Jobs of one key run one at a time, in the order of their enqueueing; one that is to be tried again, or later, holds up those behind it. */
  key?: string;
  /** Not before this moment. */
  startAfter?: Date;
  /** The job exists only if this transaction commits; call `look` then. */
  within?: Executor;
}

export interface FailedJob {
  id: string;
  data: unknown;
  attempts: number;
  error: string;
  failedAt: Date;
}
