import type { Logger } from 'pino';
import type { Clock } from './clock.ts';

/** Does `work` every `ms` until the returned function is called, never twice at once; a failure is logged and the next turn tries again. */
export function every(
  clock: Clock,
  ms: number,
  what: string,
  work: () => Promise<unknown>,
  log: Logger,
): () => Promise<void> {
  let stopped = false;
  let cancel = (): void => undefined;
  let running: Promise<unknown> = Promise.resolve();
  const arm = (): void => {
    if (stopped) return;
    cancel = clock.after(ms, () => {
      // Also what it throws before it is asked to wait.
      running = (async () => work())()
        .catch((error: unknown) => log.warn({ err: error }, `could not ${what}; it is tried again later`))
        .finally(arm);
    });
  };
  arm();
  return async () => {
    stopped = true;
    cancel();
    await running;
  };
}
