import { setTimeout as sleep } from 'node:timers/promises';

/** Looks every 25 ms until `holds`; rejects when it still does not after `timeoutMs`. */
export async function until(holds: () => boolean | Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${holds}`);
    await sleep(25);
  }
}
