import type { Clock } from './clock.ts';

/** Timers of one owner: none of them is due any more once it has closed. */
export class Timers {
  readonly #clock: Pick<Clock, 'after'>;
  readonly #pending = new Set<() => void>();
  #closed = false;

  constructor(clock: Pick<Clock, 'after'>) {
    this.#clock = clock;
  }

  /** Calls `run` once after `ms`, unless the owner has closed by then. */
  after(ms: number, run: () => void): void {
    if (this.#closed) return;
    const cancel = this.#clock.after(ms, () => {
      this.#pending.delete(cancel);
      run();
    });
    this.#pending.add(cancel);
  }

  close(): void {
    this.#closed = true;
    for (const cancel of this.#pending) cancel();
    this.#pending.clear();
  }
}
