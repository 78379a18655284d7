import { pino } from 'pino';
import { afterEach } from 'vitest';
import { FakeClock } from '../../fake-clock.ts';
import type { Health } from '../health.ts';
import { type SessionPlan, Sessions, type SessionsOptions } from '../sessions.ts';
import type { UsageSample } from '../usage.ts';
import { FakeProvider } from './fake-provider.ts';
import { MemorySessionStore } from './memory-session-store.ts';

export const key = {
  accountId: '123456789012',
  resourceArn: 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/a-0123456789',
  sessionId: 's'.repeat(33),
};
export const never = new AbortController().signal;
export const minutes = (n: number): number => n * 60_000;

/** What several servers have in common. */
export interface SharedParts {
  serverId: string;
  clock: FakeClock;
  provider: FakeProvider;
  store: MemorySessionStore;
}

/** Sessions on a fake clock, provider and store, closed after each test. */
export function house(overrides: Partial<SessionsOptions> = {}, shared?: SharedParts) {
  const clock = shared?.clock ?? new FakeClock();
  const provider = shared?.provider ?? new FakeProvider();
  const store = shared?.store ?? new MemorySessionStore();
  const serverId = shared?.serverId ?? 'mine';
  const samples: UsageSample[] = [];
  const held = { now: true };
  const starts: string[] = [];
  let made = 0;
  const sessions = new Sessions({
    provider,
    store,
    hold: { serverId, epoch: 1, held: () => held.now },
    shared: shared !== undefined,
    roomToPool: () => true,
    needRoom: () => undefined,
    clock,
    recordUsage: (sample) => samples.push(sample),
    recordStart: (outcome, seconds) => starts.push(`${outcome} after ${seconds} s`),
    keepLog: async () => undefined,
    newSandboxId: () => `${shared ? `${serverId}-` : ''}sandbox-${++made}`,
    log: pino({ level: 'silent' }),
    options: {
      pingIntervalMs: 2000,
      pingTimeoutMs: 5000,
      pingFailures: 3,
      usageIntervalMs: 5000,
      startTimeoutMs: 30_000,
      teardownTimeoutMs: 15_000,
      maxConcurrentStarts: 4,
      maxQueuedStarts: 8,
      maxPerAccount: 1000,
      maxPooled: 4,
      poolIdleMs: 600_000,
      ...overrides,
    },
  });
  const agent: { health: Health | Error } = { health: 'healthy' };
  const plan: SessionPlan = {
    kind: 'toy',
    version: '1',
    image: undefined,
    lifecycle: { idleSeconds: 900, maxLifetimeSeconds: 28_800 },
    port: 8080,
    health: async () => {
      if (agent.health instanceof Error) throw agent.health;
      return agent.health;
    },
    sandbox: async (id) => ({
      id,
      image: { digest: 'sha256:0' },
      env: {},
      volumes: [],
      network: { egress: 'none', allowCidrs: [], hostPorts: [] },
      limits: { cpu: 1, memoryBytes: 1, pids: 1, diskBytes: 1, openFiles: 1 },
      labels: {},
    }),
  };
  const pooled = (max = 3): SessionPlan => ({ ...plan, pool: { resourceArn: key.resourceArn, max } });
  sessions.kinds.add({ name: plan.kind, planOf: async () => plan, explain: () => undefined }, 'toy');
  sessions.start();
  cleanup.push(() => sessions.close());
  return {
    clock,
    provider,
    store,
    samples,
    starts,
    sessions,
    agent,
    plan,
    /** The plan of a version whose sandboxes may stand ready. */
    pooled,
    held,
    acquire: (k = key, signal = never) => sessions.acquire(k, async () => plan, signal),
  };
}

const cleanup: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of cleanup.splice(0)) await close();
});

/** Something that waits until it is opened. */
export function gate(): { promise: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const promise = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}
