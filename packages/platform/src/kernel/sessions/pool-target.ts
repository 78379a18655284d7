export interface PoolLimits {
  /** Most sandboxes kept ready. */
  max: number;
  /** Milliseconds without a new session after which none is kept. */
  idleMs: number;
}

/** A sandbox that is taken is replaced within about this long, so that as many as come in it must be there before. */
export const REPLACE_MS = 2_000;
/** How long a burst is remembered. */
export const MEMORY_MS = 60_000;
/** Arrivals that are kept; more in a minute ask for more than any pool holds. */
export const KEPT_ARRIVALS = 256;

/**
 * How many sandboxes should stand ready for what has had new sessions at `arrivals` (ms, oldest first): none before the first one and
 * when none came for long, one after it, and as many as came within any two seconds of the last minute.
 */
export function poolTarget(arrivals: readonly number[], now: number, { max, idleMs }: PoolLimits): number {
  const last = arrivals.at(-1);
  if (last === undefined || now - last >= idleMs) return 0;
  const recent = arrivals.filter((at) => now - at < MEMORY_MS);
  let burst = 1;
  let begin = 0;
  for (const [end, at] of recent.entries()) {
    while (at - (recent[begin] ?? at) >= REPLACE_MS) begin += 1;
    burst = Math.max(burst, end - begin + 1);
  }
  return Math.min(max, burst);
}
