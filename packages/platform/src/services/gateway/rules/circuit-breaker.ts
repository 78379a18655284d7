import type { Clock } from '../../../kernel/clock.ts';
import { Lru } from '../../../kernel/lru.ts';

/** Failures in a row after which one is left alone, for so long. */
const FAILURES = 5;
const REST_MS = 10_000;
const MOST_KNOWN = 10_000;

/** Which targets of fallback chains fail again and again, each with each model: others are tried before them for a while. */
export class CircuitBreaker {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #failed = new Lru<string, { failures: number; until: number }>(MOST_KNOWN);

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Whether it is left alone now. The first who asks after its rest tries it for all others. */
  isOpen(key: string): boolean {
    const state = this.#failed.get(key);
    if (!state || state.failures < FAILURES) return false;
    const now = this.#clock.monotonic();
    if (now < state.until) return true;
    state.until = now + REST_MS;
    return false;
  }

  /** Told how an attempt went. */
  note(key: string, failed: boolean): void {
    const { failures } = this.#failed.get(key) ?? { failures: 0 };
    this.#failed.set(key, { failures: failed ? failures + 1 : 0, until: this.#clock.monotonic() + REST_MS });
  }
}
