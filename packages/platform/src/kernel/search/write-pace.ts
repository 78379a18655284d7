/** A statement that takes longer keeps others waiting for the database, in milliseconds. */
const LONG_MS = 25;
const SHORT_MS = 10;
/** Of fewer, most of the time is the statement's own. */
const LEAST = 4;

/**
 * How many vectors one statement writes, and how long the database is left to others after it: to put a vector into a large graph takes
 * milliseconds, and the embedded database does one thing at a time.
 */
export class WritePace {
  readonly #most: number;
  #size = LEAST;

  constructor(most: number) {
    this.#most = most;
  }

  /** Of the next statement. */
  get size(): number {
    return this.#size;
  }

  /** Tells how long the last statement took; gives how long to rest, both in milliseconds: others have the database half of the time. */
  took(ms: number): number {
    if (ms > LONG_MS) this.#size = Math.max(LEAST, Math.floor(this.#size / 2));
    else if (ms < SHORT_MS) this.#size = Math.min(this.#most, this.#size * 2);
    return ms;
  }
}
