import type { Config } from './config.ts';
import type { SessionsOptions } from './kernel/sessions/sessions.ts';

/** The settings of sessions as the kernel takes them: milliseconds. */
export function sessionOptions({ session, sandbox }: Pick<Config, 'session' | 'sandbox'>): SessionsOptions {
  return {
    pingIntervalMs: session.pingIntervalSeconds * 1000,
    pingTimeoutMs: session.pingTimeoutSeconds * 1000,
    pingFailures: session.pingFailures,
    usageIntervalMs: session.usageIntervalSeconds * 1000,
    startTimeoutMs: sandbox.startTimeoutSeconds * 1000,
    teardownTimeoutMs: session.teardownSeconds * 1000,
    maxConcurrentStarts: sandbox.maxConcurrentStarts,
    maxQueuedStarts: sandbox.maxQueuedStarts,
  };
}
