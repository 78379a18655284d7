import { rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../clock.ts';
import type { RunResult } from './driver.ts';
import { DatabaseBusyError, DatabaseUnavailableError, StorageFullError } from './errors.ts';
import type { PgliteCommand, PgliteFailure, PgliteReply, PgliteWorkerData } from './pglite-protocol.ts';

export interface PgliteEngineOptions {
  directory: string;
  clock: Clock;
  /** How long one statement may take before the engine is ended, in milliseconds. */
  statementTimeoutMs: number;
}

/** One life of the embedded database in its thread. When it ends, every call under way fails and so does every later one. */
export interface PgliteEngine {
  /** Settles with the reason when the engine ends unasked; never when it is closed. */
  readonly failed: Promise<Error>;
  send(command: PgliteCommand): Promise<RunResult>;
  close(): Promise<void>;
}

/** SQLSTATE disk_full. PostgreSQL stops itself when it cannot write its log. */
const DISK_FULL = '53100';
/** Two segments of the write-ahead log. */
const ROOM_TO_OPEN = 32 * 1_048_576;

interface Call {
  resolve(result: RunResult): void;
  reject(error: Error): void;
}

/** Starts the thread and opens the database in it; throws when it cannot be opened. */
export async function startPgliteEngine(options: PgliteEngineOptions): Promise<PgliteEngine> {
  const { directory, clock, statementTimeoutMs } = options;
  // PostgreSQL would take the pid file of its former life for a rival; the lock on the data directory excludes any.
  await rm(join(directory, 'postmaster.pid'), { force: true });
  const workerData: PgliteWorkerData = { directory };
  const worker = new Worker(workerFile(), { workerData, execArgv: [] });
  const calls = new Map<number, Call>();
  const opened = Promise.withResolvers<void>();
  const failed = Promise.withResolvers<Error>();
  let ended: Error | undefined;
  let nextId = 1;

  const end = (error: Error): void => {
    if (ended) return;
    ended = error;
    for (const call of calls.values()) call.reject(error);
    calls.clear();
    opened.reject(error);
    failed.resolve(error);
    void worker.terminate();
  };
  worker.on('message', (reply: PgliteReply) => {
    if (reply.kind === 'ready') return opened.resolve();
    if (reply.kind === 'fatal') return end(failureToError(reply.error));
    const call = calls.get(reply.id);
    if (reply.kind === 'result') call?.resolve(reply.result);
    else call?.reject(Object.assign(new Error(reply.error.message), reply.error));
  });
  worker.on('error', (error) => end(failureToError({ message: String(error) })));
  worker.on('exit', (code) => end(failureToError({ message: `its thread ended with ${code}` })));

  const send = (command: PgliteCommand): Promise<RunResult> => {
    if (ended) return Promise.reject(ended);
    return new Promise<RunResult>((resolve, reject) => {
      const id = nextId++;
      const cancel = clock.after(statementTimeoutMs, () => {
        end(
          new DatabaseBusyError(
            `a statement took longer than ${statementTimeoutMs} ms; the embedded database restarts`,
          ),
        );
      });
      const done = (): void => {
        cancel();
        calls.delete(id);
      };
      calls.set(id, {
        resolve: (result) => {
          done();
          resolve(result);
        },
        reject: (error) => {
          done();
          reject(error);
        },
      });
      worker.postMessage({ id, ...command });
    });
  };

  await opened.promise.catch(async (error: unknown) => {
    throw await explainOpening(error, directory);
  });
  return {
    failed: failed.promise,
    send,
    close: async () => {
      if (ended) return;
      await send({ kind: 'close' }).catch(() => {});
      ended ??= new DatabaseUnavailableError('the embedded database is closed');
      await worker.terminate();
    },
  };
}

function failureToError(failure: PgliteFailure): Error {
  const Kind = failure.code === DISK_FULL ? StorageFullError : DatabaseUnavailableError;
  const message = `the embedded database stopped: ${failure.message}; the next call opens it again`;
  return new Kind(message, { code: failure.code });
}

/** Opening fails without a reason when the log cannot be replayed for want of space; the file system knows better. */
async function explainOpening(error: unknown, directory: string): Promise<unknown> {
  const { bavail, bsize } = await statfs(directory);
  if (bavail * bsize > ROOM_TO_OPEN) return error;
  const free = Math.floor((bavail * bsize) / 1_048_576);
  return new StorageFullError(
    `the embedded database cannot open: ${free} MB are free on the disk of ${directory}, and it needs ${ROOM_TO_OPEN / 1_048_576}; it opens by itself once there is room`,
    { code: DISK_FULL, cause: error },
  );
}

function workerFile(): URL {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return new URL(`./pglite-worker.${extension}`, import.meta.url);
}
