import { errors } from '@agentplatform/contract';
import type { Clock } from '../clock.ts';

interface Bucket {
  tokens: number;
  at: number;
}

/** Buckets that are full again hold nothing worth keeping; they are dropped when there are this many. */
const MAX_BUCKETS = 10_000;

/** Token buckets by key: so many calls a second, with a burst of one second's worth. */
export class RateLimiter {
  readonly #perSecond: number;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  /** `perSecond` 0 means no limit. */
  constructor(perSecond: number, clock: Clock) {
    this.#perSecond = perSecond;
    this.#clock = clock;
  }

  /** Takes one token of `key`. Throws ThrottlingException with the time until there is one when there is none. */
  take(key: string): void {
    if (this.#perSecond === 0) return;
    const now = this.#clock.monotonic();
    const burst = Math.max(1, this.#perSecond);
    const bucket = this.#buckets.get(key);
    const tokens = bucket ? Math.min(burst, bucket.tokens + ((now - bucket.at) / 1000) * this.#perSecond) : burst;
    if (tokens < 1) {
      throw errors.throttling(`More than ${this.#perSecond} calls a second to ${key}.`, {
        remedy: 'Retry with backoff, or raise the quota in the configuration.',
        retryAfterSeconds: (1 - tokens) / this.#perSecond,
      });
    }
    if (bucket) {
      bucket.tokens = tokens - 1;
      bucket.at = now;
      return;
    }
    if (this.#buckets.size >= MAX_BUCKETS) this.#dropFull(now, burst);
    this.#buckets.set(key, { tokens: tokens - 1, at: now });
  }

  #dropFull(now: number, burst: number): void {
    for (const [key, { tokens, at }] of this.#buckets) {
      if (tokens + ((now - at) / 1000) * this.#perSecond >= burst) this.#buckets.delete(key);
    }
  }
}
