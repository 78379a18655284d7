import { freemem, totalmem } from 'node:os';
import type { Config } from './config.ts';
import type { SessionsOptions } from './kernel/sessions/index.ts';

/** Part of the memory that stays free of sandboxes which nobody asked for yet. */
const FREE_PART = 0.2;

/** Whether the machine has memory to spare. */
export function roomToPool(): boolean {
  return freemem() > totalmem() * FREE_PART;
}

/** Bytes of memory that may be promised to sandboxes (`minimumMemoryInMiB`): three quarters of the machine, and one sandbox's in any case. */
export function promisedMemory({ sandbox }: Pick<Config, 'sandbox'>): number {
  return Math.max(Math.floor((totalmem() * 3) / 4), sandbox.limits.memoryBytes);
}

/** The settings of sessions as the kernel takes them: milliseconds. */
export function sessionOptions({
  session,
  sandbox,
  pool,
  quotas,
}: Pick<Config, 'session' | 'sandbox' | 'pool' | 'quotas'>): SessionsOptions {
  return {
    pingIntervalMs: session.pingIntervalSeconds * 1000,
    pingTimeoutMs: session.pingTimeoutSeconds * 1000,
    pingFailures: session.pingFailures,
    usageIntervalMs: session.usageIntervalSeconds * 1000,
    startTimeoutMs: sandbox.startTimeoutSeconds * 1000,
    teardownTimeoutMs: session.teardownSeconds * 1000,
    maxConcurrentStarts: sandbox.maxConcurrentStarts,
    maxQueuedStarts: sandbox.maxQueuedStarts,
    maxPerAccount: quotas.sessionsPerAccount,
    maxPooled: pool.maxTotal,
    poolIdleMs: pool.idleSeconds * 1000,
  };
}
