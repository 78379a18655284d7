import type { Logger } from 'pino';
import type { EndReason } from './session-state.ts';
import type { SessionStore } from './session-store.ts';

/** Ends that may wait. No session begins without the database, so that more than live at once never gather. */
const MAX_WAITING = 10_000;

/** Ends that the database did not take, because it was down; they are stored as soon as it is back. */
export class UnstoredEnds {
  readonly #store: Pick<SessionStore, 'end'>;
  readonly #log: Logger;
  readonly #limit: number;
  readonly #waiting = new Map<string, { reason: EndReason; at: number }>();
  #flushing: Promise<void> | undefined;

  constructor(store: Pick<SessionStore, 'end'>, log: Logger, limit = MAX_WAITING) {
    this.#store = store;
    this.#log = log;
    this.#limit = limit;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Stores an end, now or later. Never rejects. */
  async store(sandboxId: string, reason: EndReason, at: number): Promise<void> {
    try {
      await this.#store.end(sandboxId, reason, at);
    } catch (error) {
      this.#keep(sandboxId, { reason, at }, error);
    }
  }

  #keep(sandboxId: string, end: { reason: EndReason; at: number }, err: unknown): void {
    if (this.#waiting.size >= this.#limit) {
      this.#log.error({ err, sandboxId }, 'the end of a session is not stored; the next start of the server does it');
      return;
    }
    this.#waiting.set(sandboxId, end);
    this.#log.warn({ err, sandboxId }, 'the end of a session could not be stored yet');
  }

  /** Stores what waits, never twice at once. Rejects with the database's error while it is still down. */
  flush(): Promise<void> {
    if (this.#waiting.size === 0) return Promise.resolve();
    this.#flushing ??= this.#flush().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #flush(): Promise<void> {
    for (const [sandboxId, { reason, at }] of this.#waiting) {
      await this.#store.end(sandboxId, reason, at);
      this.#waiting.delete(sandboxId);
    }
  }
}
