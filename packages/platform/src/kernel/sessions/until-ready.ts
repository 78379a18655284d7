import type { Dispatcher } from 'undici';
import { type Clock, sleep } from '../clock.ts';
import type { Sandbox } from '../sandbox/index.ts';
import type { HealthCheck } from './health.ts';
import type { SessionPlan } from './session-plan.ts';
import { exitedSoon, StartFailure } from './start-failure.ts';

export interface ReadyOptions {
  port: number;
  health: HealthCheck;
  warmUp?: SessionPlan['warmUp'];
  startTimeoutMs: number;
  pingTimeoutMs: number;
  clock: Clock;
}

/** Waits between looks whether a starting agent answers, in ms: often at first, for a fast start is common. */
const READY_POLL_MS = [2, 2, 4, 4, 8, 8, 10, 10, 15, 20, 25];
const READY_POLL_MAX_MS = 50;

/**
 * Waits as `untilWarm` does. A copy that does not get there was copied from something that nobody can use: the next one begins anew.
 */
export async function untilReady(
  sandbox: Sandbox,
  connection: Dispatcher,
  options: ReadyOptions,
  signal: AbortSignal,
): Promise<void> {
  try {
    await untilWarm(sandbox, connection, options, signal);
  } catch (error) {
    if (!signal.aborted) await sandbox.copied?.forget();
    throw error;
  }
}

/** Waits until the agent's health route answers, and then until it is warm, as a copy is from its beginning; a sandbox that exits or a time that runs out is a `StartFailure` with the agent's last lines. */
async function untilWarm(
  sandbox: Sandbox,
  connection: Dispatcher,
  { port, health, warmUp, startTimeoutMs, pingTimeoutMs, clock }: ReadyOptions,
  signal: AbortSignal,
): Promise<void> {
  const deadline = clock.monotonic() + startTimeoutMs;
  const gone = new AbortController();
  void sandbox.exited.then(() => gone.abort());
  const either = AbortSignal.any([signal, gone.signal]);
  let last: unknown;
  for (let attempt = 0; ; attempt += 1) {
    const left = deadline - clock.monotonic();
    if (left <= 0) throw await StartFailure.timeout(sandbox, port, startTimeoutMs, last);
    try {
      await health(
        connection,
        AbortSignal.any([either, AbortSignal.timeout(Math.ceil(Math.min(left, pingTimeoutMs)))]),
      );
      break;
    } catch (error) {
      last = error;
    }
    signal.throwIfAborted();
    if (gone.signal.aborted) throw await StartFailure.exited(sandbox);
    await sleep(clock, Math.min(READY_POLL_MS[attempt] ?? READY_POLL_MAX_MS, left), either).catch(() => undefined);
  }
  try {
    if (!sandbox.copied) await warmUp?.(sandbox, either);
  } catch (error) {
    signal.throwIfAborted();
    throw (await exitedSoon(sandbox)) ? await StartFailure.exited(sandbox) : error;
  }
}
