import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../clock.ts';
import type { RunResult } from './driver.ts';
import { DatabaseBusyError, DatabaseUnavailableError } from './errors.ts';
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

  await opened.promise;
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

/** PostgreSQL stops itself when it cannot write its log; the message then tells of the disk. */
function failureToError(failure: PgliteFailure): Error {
  return new DatabaseUnavailableError(
    `the embedded database stopped: ${failure.message}; the next call opens it again`,
    {
      code: failure.code,
    },
  );
}

function workerFile(): URL {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return new URL(`./pglite-worker.${extension}`, import.meta.url);
}
