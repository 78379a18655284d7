import { type ChildProcess, spawn } from 'node:child_process';
import { constants, setPriority } from 'node:os';
import { fileURLToPath } from 'node:url';
import { ModelError } from '../models/index.ts';

/** One request at a time, answered by one reply. */
export interface ModelRequest {
  texts: readonly string[];
}

export type ModelReply = { vectors: Float32Array[] } | { failure: string };

const WORKER = fileURLToPath(new URL('./sentence-model-worker.ts', import.meta.url));
/** Nothing of the server's environment; freed memory goes back at once, as in the server itself (`scripts/supervise.mjs`). */
const ENV = { MALLOC_ARENA_MAX: '1', MALLOC_TRIM_THRESHOLD_: '131072' };

/** One life of the process that runs a sentence model. It is asked one thing at a time; once it has ended, every request is rejected. */
export class SentenceModelProcess {
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>;
  readonly pid: number | undefined;
  readonly #child: ChildProcess;
  #end: string | undefined;
  #waiting: PromiseWithResolvers<Float32Array[]> | undefined;

  constructor(directory: string, { threads, yields }: { threads: number; yields: boolean }) {
    const child = spawn(process.execPath, [WORKER, directory, String(threads)], {
      // In a session of its own: Ctrl-C at the server's terminal is for the server, which ends it in its turn.
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      serialization: 'advanced',
      cwd: '/',
      env: ENV,
    });
    this.#child = child;
    this.pid = child.pid;
    if (yields && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
    this.ended = new Promise((resolve) => {
      const end = (how: string): void => {
        this.#end ??= `the process of the embedding model ended (${how})`;
        this.#waiting?.reject(new ModelError(this.#end));
        this.#waiting = undefined;
        resolve();
      };
      child.once('exit', (status, signal) => end(signal ?? `status ${status}`));
      // It could not be started, or a request could not be handed over.
      child.on('error', (error) => {
        if (child.pid === undefined) end(error.message);
        else this.#child.kill('SIGKILL');
      });
    });
    child.on('message', (reply: ModelReply) => {
      const waiting = this.#waiting;
      this.#waiting = undefined;
      if ('vectors' in reply) waiting?.resolve(reply.vectors);
      else waiting?.reject(new ModelError(`the embedding model failed: ${reply.failure}`));
    });
  }

  /** The vectors of `texts`, in order. Rejects with `ModelError` when the model fails or its process ends. */
  embed(texts: readonly string[]): Promise<Float32Array[]> {
    if (this.#end !== undefined) return Promise.reject(new ModelError(this.#end));
    if (this.#waiting) throw new Error('the process of the embedding model is asked two things at once');
    const waiting = Promise.withResolvers<Float32Array[]>();
    this.#waiting = waiting;
    const request: ModelRequest = { texts };
    this.#child.send(request, (error) => {
      if (error) this.#child.kill('SIGKILL');
    });
    return waiting.promise;
  }

  /** Whether it can still be asked. */
  get alive(): boolean {
    return this.#end === undefined;
  }

  /** Ends it at once, whatever it is at: it holds nothing but memory. Whoever waits for it is told why. Resolves when it is gone. */
  async end(why: string): Promise<void> {
    this.#end ??= `the process of the embedding model was ended: ${why}`;
    this.#child.kill('SIGKILL');
    await this.ended;
  }
}
