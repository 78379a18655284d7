import { LimitEntries } from './limit-entries.ts';
import type { RateLimit } from './rate-limit.ts';

/** A rate limit with its entries at hand. */
export interface OpenLimit {
  limit: RateLimit;
  entries: LimitEntries;
}

export function openLimit(limit: RateLimit): OpenLimit {
  return { limit, entries: new LimitEntries(limit.dimensionKeys, limit.entries) };
}
