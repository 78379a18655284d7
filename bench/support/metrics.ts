import { setTimeout as sleep } from 'node:timers/promises';

/** Waits, at most a minute, until the metrics of a platform say so. */
export async function untilMetric(endpoint: URL, wanted: RegExp, otherwise: string): Promise<void> {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await sleep(100)) {
    const metrics = await (await fetch(new URL('/metrics', endpoint))).text();
    if (wanted.test(metrics)) return;
  }
  throw new Error(`${otherwise} after a minute`);
}

/** Resolves when nothing is left to be written of earlier requests, so that it does not slow down whoever is measured next. */
export function journalSettled(endpoint: URL): Promise<void> {
  return untilMetric(endpoint, /^agentplatform_journal_lag_records 0$/m, 'the journal of the platform is not empty');
}
