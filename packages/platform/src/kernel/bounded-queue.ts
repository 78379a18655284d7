/** Thrown when more waits than the queue may hold. */
export class QueueFullError extends Error {
  constructor(limit: number) {
    super(`${limit} are already waiting`);
    this.name = 'QueueFullError';
  }
}

interface Waiter {
  admit: () => void;
  refuse: (reason: unknown) => void;
}

/** Lets at most `running` pieces of work run at once and at most `waiting` wait, first come first served. */
export class BoundedQueue {
  readonly #limits: { running: number; waiting: number };
  readonly #waiting = new Set<Waiter>();
  #running = 0;

  constructor(limits: { running: number; waiting: number }) {
    this.#limits = limits;
  }

  /** True when work would be refused now. */
  get full(): boolean {
    return this.#running >= this.#limits.running && this.#waiting.size >= this.#limits.waiting;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Runs `work` when its turn comes. Rejects with `QueueFullError` at once when the queue is full, with the signal's reason when aborted while waiting. */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.#enter(signal);
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  async #enter(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    if (this.#running < this.#limits.running) {
      this.#running += 1;
      return;
    }
    if (this.#waiting.size >= this.#limits.waiting) throw new QueueFullError(this.#limits.waiting);
    await new Promise<void>((resolve, reject) => {
      const waiter: Waiter = {
        admit: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
        refuse: reject,
      };
      const onAbort = (): void => {
        this.#waiting.delete(waiter);
        waiter.refuse(signal?.reason);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(waiter);
    });
  }

  /** Hands the place to the next waiter, so that `#running` never dips and lets a newcomer overtake. */
  #leave(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#running -= 1;
      return;
    }
    this.#waiting.delete(next);
    next.admit();
  }
}
