import { createHash } from 'node:crypto';
import type { Clock } from '../../../kernel/clock.ts';
import { Lru } from '../../../kernel/lru.ts';

/** A whole answer, as its client gets it. */
export interface CachedAnswer {
  headers: Record<string, string>;
  body: string | Uint8Array;
}

const MOST_BYTES = 64 * 2 ** 20;
const LARGEST = 2 ** 20;
/** Of an entry beside its body. */
const OVERHEAD = 512;

/** Answers of models that were given before, in the memory of this server. */
export class AnswerCache {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #answers = new Lru<string, CachedAnswer & { until: number }>(MOST_BYTES, weightOf);

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  get(key: string): CachedAnswer | undefined {
    const found = this.#answers.get(key);
    if (!found || this.#clock.monotonic() < found.until) return found;
    this.#answers.delete(key);
    return undefined;
  }

  /** Keeps it for so long, unless it is too large. */
  set(key: string, answer: CachedAnswer, seconds: number): void {
    const kept = { ...answer, until: this.#clock.monotonic() + seconds * 1000 };
    if (weightOf(kept) <= LARGEST) this.#answers.set(key, kept);
  }
}

/** Different for different lists of parts. */
export function cacheKey(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest('base64url');
}

function weightOf({ body }: CachedAnswer): number {
  return Buffer.byteLength(body) + OVERHEAD;
}
