import { errors } from '@agentplatform/contract';
import type { Clock } from '../clock.ts';

interface Bucket {
  tokens: number;
  at: number;
}

/** Keys that are remembered; of more, the one that came first begins anew. */
const MAX_BUCKETS = 10_000;

/** Token buckets by key: so many calls a second, with a burst of one second's worth. */
export class RateLimiter {
  readonly perSecond: number;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  /** `perSecond` 0 means no limit. */
  constructor(perSecond: number, clock: Clock) {
    this.perSecond = perSecond;
    this.#clock = clock;
  }

  /** Takes one token of `key`. Throws ThrottlingException with the time until the next token when none is left. */
  take(key: string): void {
    const seconds = this.tryTake(key);
    if (seconds === 0) return;
    throw errors.throttling(`More than ${this.perSecond} calls a second to ${key}.`, {
      remedy: 'Retry with backoff, or raise the quota in the configuration.',
      retryAfterSeconds: seconds,
    });
  }

  /** Takes one token of `key`, if there is one: 0 then, otherwise the seconds until there is. */
  tryTake(key: string): number {
    if (this.perSecond === 0) return 0;
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(key);
    const seconds = this.#missing(bucket, now);
    if (seconds > 0) return seconds;
    const tokens = this.#tokens(bucket, now) - 1;
    if (bucket) {
      bucket.tokens = tokens;
      bucket.at = now;
      return 0;
    }
    this.#makeRoom();
    this.#buckets.set(key, { tokens, at: now });
    return 0;
  }

  /** As `tryTake`, and takes none. */
  look(key: string): number {
    if (this.perSecond === 0) return 0;
    const bucket = this.#buckets.get(key);
    return bucket ? this.#missing(bucket, this.#clock.monotonic()) : 0;
  }

  /** Seconds until there is a token; 0 when there is one. */
  #missing(bucket: Bucket | undefined, now: number): number {
    const tokens = this.#tokens(bucket, now);
    return tokens < 1 ? (1 - tokens) / this.perSecond : 0;
  }

  #tokens(bucket: Bucket | undefined, now: number): number {
    const burst = Math.max(1, this.perSecond);
    return bucket ? Math.min(burst, bucket.tokens + ((now - bucket.at) / 1000) * this.perSecond) : burst;
  }

  #makeRoom(): void {
    if (this.#buckets.size < MAX_BUCKETS) return;
    for (const oldest of this.#buckets.keys()) {
      this.#buckets.delete(oldest);
      return;
    }
  }
}
