import { BoundedQueue, QueueFullError } from '../../bounded-queue.ts';
import { TreeError } from './tree.ts';
import { callMs } from './tree-lines.ts';

const AT_ONCE = 16;
/** Of those that take long, so that there is always room for the short ones. */
const AT_ONCE_OF: Record<string, number> = { fetch: 4, store: 4, rename: 4, list: 1 };
const WAITING = 10_000;

/** What one mount has asked for: so much of it at once, the rest in its turn, and each for so long. */
export class CallsUnderWay {
  readonly #all = new BoundedQueue({ running: AT_ONCE, waiting: WAITING });
  readonly #kinds = new Map(
    Object.entries(AT_ONCE_OF).map(([op, running]) => [op, new BoundedQueue({ running, waiting: WAITING })]),
  );
  readonly #aborts = new Set<AbortController>();
  readonly #limitMs: (op: string) => number;

  constructor(limitMs: (op: string) => number = callMs) {
    this.#limitMs = limitMs;
  }

  /** Settles when the work has, which is told to end after as long as such a call may take. Rejects with EAGAIN when too many wait. */
  async run<T>(op: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const abort = new AbortController();
    const { signal } = abort;
    const timer = setTimeout(() => abort.abort(new TreeError('EIO')), this.#limitMs(op));
    this.#aborts.add(abort);
    try {
      const inTurn = () => this.#all.run(() => work(signal), signal);
      return await (this.#kinds.get(op)?.run(inTurn, signal) ?? inTurn());
    } catch (error) {
      throw error instanceof QueueFullError ? new TreeError('EAGAIN', { cause: error }) : error;
    } finally {
      clearTimeout(timer);
      this.#aborts.delete(abort);
    }
  }

  /** Nobody waits for any of it any more. */
  end(): void {
    for (const abort of this.#aborts) abort.abort(new TreeError('EIO'));
  }
}
