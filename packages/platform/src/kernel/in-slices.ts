import { setImmediate as turn } from 'node:timers/promises';

/** Milliseconds. */
const SLICE_MS = 8;

/** Does the work on each item in order, and lets others have their turn whenever it has taken some milliseconds. */
export async function inSlices<T>(items: readonly T[], work: (item: T, at: number) => void): Promise<void> {
  let until = performance.now() + SLICE_MS;
  for (const [at, item] of items.entries()) {
    work(item, at);
    if (performance.now() < until) continue;
    await turn();
    until = performance.now() + SLICE_MS;
  }
}
