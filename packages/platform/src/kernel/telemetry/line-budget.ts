import type { Clock } from '../clock.ts';
import { Lru } from '../lru.ts';

interface Said {
  /** Lines that may be written yet in the minute that began then. */
  left: number;
  began: number;
  held: number;
}

/** What is to be written with a line. */
export interface Told {
  /** So many lines of its kind, or of kinds that are new as it is, were held back since the last one. */
  held: number;
  /** It is the last in this minute; the rest is held back. */
  last: boolean;
}

/** Lines of one kind that are written in a minute; of the rest the number. */
const LINES = 60;
const MINUTE_MS = 60_000;
/** Kinds that are told apart at once; beyond it the one that came least recently is forgotten. */
const MAX_KINDS = 500;
/** New kinds that get their lines in a minute, errors beside all others: above what a server says, below what forged kinds would have. */
const NEW_KINDS = 500;

/**
 * Keeps one kind of line from filling the disk that a log is on: a client or an agent may bring it about as often as he likes. What is
 * held back is told with the next line of its kind, and with the last one before that there may be more.
 */
export class LineBudget {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #kinds = new Lru<string, Said>(MAX_KINDS);
  readonly #fresh: Record<'errors' | 'others', Said>;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    const began = clock.monotonic();
    this.#fresh = { errors: { left: NEW_KINDS, began, held: 0 }, others: { left: NEW_KINDS, began, held: 0 } };
  }

  /** What is to be written with this line, or undefined when it is to be held back. Kinds that are no errors hold back none that are. */
  take(kind: string, isError = false): Told | undefined {
    const now = this.#clock.monotonic();
    const known = this.#kinds.get(kind);
    if (known) return spend(known, LINES, now);
    const told = spend(this.#fresh[isError ? 'errors' : 'others'], NEW_KINDS, now);
    if (told) this.#kinds.set(kind, { left: LINES - 1, began: now, held: 0 });
    return told;
  }
}

/** Takes a line of this minute; if no line is left, counts it as held back. */
function spend(said: Said, lines: number, now: number): Told | undefined {
  if (now - said.began >= MINUTE_MS) {
    said.left = lines;
    said.began = now;
  }
  if (said.left === 0) {
    said.held += 1;
    return undefined;
  }
  said.left -= 1;
  const { held } = said;
  said.held = 0;
  return { held, last: said.left === 0 };
}
