import type { Clock } from './clock.ts';

interface Timer {
  at: number;
  run: () => void;
}

/** A clock for tests: time moves only by `advance`, which fires the timers that fall due, in order. */
export class FakeClock implements Clock {
  #now: number;
  #start: number;
  #timers = new Set<Timer>();

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#now = start;
    this.#start = start;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now - this.#start;
  }

  /** Sets the wall clock by `ms`, as an operator or NTP does; durations and timers do not notice. */
  jump(ms: number): void {
    this.#now += ms;
    this.#start += ms;
    for (const timer of this.#timers) timer.at += ms;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, ms), run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Moves time by `ms`; between two timers the event loop gets a turn, so awaited work that they start goes on. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      const due = [...this.#timers].filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      this.#timers.delete(due);
      this.#now = Math.max(this.#now, due.at);
      due.run();
    }
    this.#now = end;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
