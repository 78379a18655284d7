import { setTimeout as sleep } from 'node:timers/promises';
import { median, percentile } from '../support/statistics.ts';
import type { BenchPlatform } from './bench-platform.ts';
import { timeNewSession } from './new-session.ts';

export interface PooledStart {
  /** Milliseconds from a new session's request to the first byte of its answer, a prepared sandbox being there. */
  p50: number;
  p95: number;
  rounds: number;
}

/** After a new sandbox stands ready: what the platform still does for it is done while nothing is measured. */
const SETTLE_MS = 200;

/** New sessions, one after the other, each when a sandbox stands ready for it. */
export async function pooledStart(bench: BenchPlatform, rounds: number): Promise<PooledStart> {
  const taken: number[] = [];
  // The first use of the version is what makes the pool.
  await timeNewSession(bench);
  for (let round = -3; round < rounds; round += 1) {
    await bench.pooled();
    await sleep(SETTLE_MS);
    const ms = await timeNewSession(bench);
    if (round >= 0) taken.push(ms);
  }
  return { p50: median(taken), p95: percentile(taken, 0.95), rounds };
}
