import type { Clock } from '../../../kernel/clock.ts';
import { Lru } from '../../../kernel/lru.ts';

/** After this many failures in a row, a target is skipped for `REST_MS`. */
const FAILURES = 5;
const REST_MS = 10_000;
const MOST_KNOWN = 10_000;

/** Counts the failures of the targets of fallback chains, for each target and model. A target that keeps failing is skipped for a while. */
export class CircuitBreaker {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #failed = new Lru<string, { failures: number; until: number }>(MOST_KNOWN);

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Whether the target is skipped now. After the rest, only the first caller gets false, and tries the target. The others still skip it. */
  isOpen(key: string): boolean {
    const state = this.#failed.get(key);
    if (!state || state.failures < FAILURES) return false;
    const now = this.#clock.monotonic();
    if (now < state.until) return true;
    state.until = now + REST_MS;
    return false;
  }

  /** Records the result of an attempt. */
  note(key: string, failed: boolean): void {
    const { failures } = this.#failed.get(key) ?? { failures: 0 };
    this.#failed.set(key, { failures: failed ? failures + 1 : 0, until: this.#clock.monotonic() + REST_MS });
  }
}
