import { Worker } from 'node:worker_threads';
import { errorCode } from '../../../kernel/system-error.ts';
import type { CompileOptions, DocumentInput } from '../openapi/compile.ts';
import type { SmithyInput, SmithyOptions } from '../smithy/compile.ts';
import { type Compiled, nothingOf } from './compiled.ts';

/** What a thread may take. */
export interface ThreadLimits {
  /** Milliseconds until the thread is ended; time in which files are fetched counts. */
  timeoutMs: number;
  /** MiB of its heap. */
  heapMb: number;
}

/** A document to be compiled. */
export type CompileJob =
  | { kind: 'openapi'; input: DocumentInput; options: CompileOptions }
  | { kind: 'smithy'; input: SmithyInput; options: SmithyOptions };

/** A job as it reaches the thread: fetching stays outside. */
export interface ThreadJob {
  job: CompileJob;
  resolves: boolean;
}

/** The thread wants a file, or is done. */
export type FromWorker = { wants: string } | { compiled: Compiled };
/** A file, or why there is none. */
export interface ToWorker {
  url: string;
  text?: string;
  why?: string;
}

type Resolve = NonNullable<CompileOptions['resolve']>;

const THREAD_LIMITS: ThreadLimits = { timeoutMs: 60_000, heapMb: 768 };

/**
 * Compiles in a thread of its own, for documents of anybody: one that takes too long or too much memory is a problem of the document, and
 * ends with its thread. Throws the signal's reason, and what is a defect of the platform.
 */
export async function compileInWorker(
  given: CompileJob,
  limits: Partial<ThreadLimits> = {},
  signal?: AbortSignal,
): Promise<Compiled> {
  signal?.throwIfAborted();
  const { timeoutMs, heapMb } = { ...THREAD_LIMITS, ...limits };
  const { job, resolve } = withoutFetching(given);
  const workerData: ThreadJob = { job, resolves: resolve !== undefined };
  const worker = new Worker(new URL('./compile-worker.ts', import.meta.url), {
    workerData,
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
    // The server's own flags are not the worker's; secrets in the environment neither.
    execArgv: [],
    env: {},
  });
  const timeout = AbortSignal.timeout(timeoutMs);
  const ends = signal ? AbortSignal.any([signal, timeout]) : timeout;
  const stop = (): void => void worker.terminate();
  ends.addEventListener('abort', stop, { once: true });
  try {
    return await ended(worker, resolve);
  } catch (error) {
    signal?.throwIfAborted();
    if (timeout.aborted) return refused(`The document takes longer than ${timeoutMs / 1000} s to be read.`);
    if (errorCode(error) === 'ERR_WORKER_OUT_OF_MEMORY')
      return refused(`The document takes more than ${heapMb} MiB of memory to be read.`);
    throw error;
  } finally {
    ends.removeEventListener('abort', stop);
    await worker.terminate();
  }
}

const refused = (message: string): Compiled => nothingOf([{ severity: 'error', message }]);

function withoutFetching(job: CompileJob): { job: CompileJob; resolve?: Resolve } {
  if (job.kind === 'smithy') return { job };
  const { resolve, ...options } = job.options;
  return { job: { ...job, options }, ...(resolve ? { resolve } : {}) };
}

function ended(worker: Worker, resolve: Resolve | undefined): Promise<Compiled> {
  return new Promise((done, fail) => {
    worker.on('message', (message: FromWorker) => {
      if ('compiled' in message) done(message.compiled);
      else fetched(message.wants, resolve).then((answer) => worker.postMessage(answer), fail);
    });
    worker.once('error', fail);
    worker.once('exit', () => fail(new Error('The thread that compiles documents ended early.')));
  });
}

async function fetched(url: string, resolve: Resolve | undefined): Promise<ToWorker> {
  try {
    return { url, text: await resolve?.(url) };
  } catch (error) {
    return { url, why: error instanceof Error ? error.message : String(error) };
  }
}
