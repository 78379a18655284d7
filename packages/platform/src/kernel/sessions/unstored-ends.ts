import type { Logger } from 'pino';
import type { EndReason } from './session-state.ts';
import type { SessionStore } from './session-store.ts';

/** Ends that the database did not take, because it was down; they are stored as soon as it is back. */
export class UnstoredEnds {
  readonly #store: SessionStore;
  readonly #log: Logger;
  readonly #waiting = new Map<string, { reason: EndReason; at: number }>();

  constructor(store: SessionStore, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Stores an end, now or later. Never rejects. */
  async store(sandboxId: string, reason: EndReason, at: number): Promise<void> {
    try {
      await this.#store.end(sandboxId, reason, at);
    } catch (error) {
      this.#waiting.set(sandboxId, { reason, at });
      this.#log.warn({ err: error, sandboxId }, 'the end of a session could not be stored yet');
    }
  }

  /** Stores what waits. Rejects with the database's error while it is still down. */
  async flush(): Promise<void> {
    for (const [sandboxId, { reason, at }] of this.#waiting) {
      await this.#store.end(sandboxId, reason, at);
      this.#waiting.delete(sandboxId);
    }
  }
}
