/**
 * Measures what one known session costs the server: the real session table and the real handles of sandboxes, over a provider that
 * makes no process and a store that keeps nothing here, as the database keeps it elsewhere. Each session is used once by HTTP, by a user of its own.
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { type Clock, systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { ownedSandbox } from '../../packages/platform/src/kernel/sandbox/owner/owned-sandbox.ts';
import type { Sandbox, SandboxProvider, SandboxSpec } from '../../packages/platform/src/kernel/sandbox/sandbox.ts';
import { pingHealth } from '../../packages/platform/src/kernel/sessions/health.ts';
import type { SessionStore } from '../../packages/platform/src/kernel/sessions/session-store.ts';
import { type SessionPlan, Sessions } from '../../packages/platform/src/kernel/sessions/sessions.ts';
import { WorkloadTokens } from '../../packages/platform/src/services/identity/workloads/workload-tokens.ts';
import { AgentTokens } from '../../packages/platform/src/services/runtime/agent-tokens.ts';
import { USER_HEADER } from '../../packages/platform/src/services/runtime/container-headers.ts';

const COUNT = 10_000;
/** Half a minute without use, after which a session holds no socket, passes in a tenth. */
const SPEED = 10;
const SETTLE_MS = 6_000;

let armed = 0;
const clock: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic() * SPEED,
  after(ms, run) {
    armed += 1;
    let open = true;
    const done = (): void => {
      if (open) armed -= 1;
      open = false;
    };
    const cancel = systemClock.after(ms / SPEED, () => {
      done();
      run();
    });
    return () => {
      done();
      cancel();
    };
  },
};
const agent = createServer((_, res) => res.end('{"status":"Healthy"}')).listen(0, '127.0.0.1');
await new Promise((resolve) => agent.once('listening', resolve));
const { port } = agent.address() as AddressInfo;

const create = async (spec: SandboxSpec): Promise<Sandbox> =>
  ownedSandbox({
    id: spec.id,
    labels: spec.labels,
    isolation: 'none',
    dir: `/nowhere/${spec.id}`,
    clock,
    init: { pid: 1, startedAt: spec.id },
    ownerEnded: new Promise(() => undefined),
    parts: {
      address: () => ({ host: '127.0.0.1', port }),
      exec: () => Promise.reject(new Error('no command runs here')),
      readUsage: async () => ({ cpuSeconds: 1, memoryHighWaterBytes: 1 }),
      ranOutOfMemory: async () => false,
      kill: async () => undefined,
      remove: async () => undefined,
    },
  });
const provider: SandboxProvider = {
  name: 'process',
  stage: async () => undefined,
  probe: async () => ({ provider: 'none', usable: true, isolation: 'none', missing: [] }),
  create,
  async *reattach() {},
  sweep: async () => [],
  close: async () => undefined,
};
const store: SessionStore = {
  begin: async () => undefined,
  activate: async () => true,
  end: async () => undefined,
  live: async () => [],
  holder: async () => undefined,
  inSandbox: async () => undefined,
  of: async () => [],
  list: async () => [],
};
const sessions = new Sessions({
  provider,
  store,
  hold: { serverId: 'bench', epoch: 1, held: () => true },
  shared: false,
  roomToPool: () => false,
  needRoom: () => undefined,
  recordUsage: () => undefined,
  recordStart: () => undefined,
  keepLog: async () => undefined,
  clock,
  newSandboxId: () => `s-${randomBytes(8).toString('hex')}`,
  log: pino({ level: 'silent' }),
  options: {
    pingIntervalMs: 600_000,
    pingTimeoutMs: 100_000,
    pingFailures: 3,
    usageIntervalMs: 600_000,
    startTimeoutMs: 600_000,
    teardownTimeoutMs: 1000,
    maxConcurrentStarts: 16,
    maxQueuedStarts: COUNT,
    maxPerAccount: COUNT * 2,
    maxPooled: 0,
    poolIdleMs: 1000,
  },
});
sessions.start();
const accountId = '123456789012';
const workloadTokens = new WorkloadTokens({
  key: randomBytes(32),
  lifeMs: 900_000,
  find: async () => undefined,
  clock,
});
const principal = {
  kind: 'iam',
  accountId,
  arn: `arn:aws:iam::${accountId}:user/bench`,
  accessKeyId: 'AKIA',
  tags: {},
} as const;
const tokens = new AgentTokens({ issueToken: (bearer) => workloadTokens.issue(bearer) }, clock);
const runtime = { accountId, id: 'agent_abcdefgh-0123456789' };
const resourceArn = `arn:aws:bedrock-agentcore:us-east-1:${accountId}:runtime/${runtime.id}`;
// As the runtime service has it: one plan for all sessions of a version.
const plan: SessionPlan = {
  kind: 'runtime',
  version: '1',
  image: `sha256:${'0'.repeat(64)}`,
  lifecycle: { idleSeconds: 900_000, maxLifetimeSeconds: 900_000 },
  port: 8080,
  health: pingHealth,
  sandbox: async (id) => ({
    id,
    image: { digest: '' },
    env: {},
    volumes: [],
    network: { egress: 'none', allowCidrs: [], hostPorts: [] },
    limits: { cpu: 1, memoryBytes: 1, pids: 1, diskBytes: 1, openFiles: 1 },
    labels: { kind: 'runtime', runtime: resourceArn, version: '1' },
  }),
};

async function open(count: number, prefix: string): Promise<void> {
  for (let i = 0; i < count; i += 100) {
    await Promise.all(
      Array.from({ length: Math.min(100, count - i) }, async (_, k) => {
        const sessionId = `${prefix}-${String(i + k).padStart(29, '0')}`;
        const lease = await sessions.acquire({ accountId, resourceArn, sessionId }, async () => plan, signal);
        const { body } = await lease.connection.request({ method: 'GET', path: '/' });
        const caller = { principal, headers: { [USER_HEADER]: `user-${i + k}` } };
        tokens.of(runtime, caller);
        await body.dump();
        lease.release();
      }),
    );
  }
}

const signal = new AbortController().signal;
/** Bytes after a collection; sockets that a session has let go of take a moment to close. */
async function settled(): Promise<number> {
  await sleep(SETTLE_MS);
  for (let i = 0; i < 4; i += 1) {
    globalThis.gc?.();
    await sleep(50);
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

// What is loaded and compiled with the first sessions is no cost of one.
await open(200, 'warm');
const before = await settled();
await open(COUNT, 'known');
const after = await settled();
process.stdout.write(
  JSON.stringify({ sessions: COUNT, bytesEach: Math.round((after - before) / COUNT), timers: armed }),
);
process.exit(0);
