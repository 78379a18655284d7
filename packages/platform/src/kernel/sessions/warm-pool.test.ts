import { describe, expect, it } from 'vitest';
import { HealthFailure } from './health.ts';
import type { SessionPlan } from './session-plan.ts';
import { gate, house, key, minutes, never } from './testing/session-house.ts';

const named = (name: string) => ({ ...key, sessionId: name.repeat(33).slice(0, 33) });

/** A house whose version may have sandboxes ready, and a way to open sessions of it. */
function pooledHouse(max = 3, overrides: Parameters<typeof house>[0] = {}) {
  const parts = house(overrides);
  const plan = parts.pooled(max);
  const open = (name: string, wanted: SessionPlan = plan) =>
    parts.sessions.acquire(named(name), async () => wanted, never);
  return { ...parts, plan, open, settle: () => parts.clock.advance(100) };
}

describe('sandboxes that stand ready', () => {
  it('are none before the first session of a version, and one after it', async () => {
    const { sessions, provider, clock, open, settle } = pooledHouse();
    await clock.advance(minutes(1));
    expect(provider.created).toHaveLength(0);
    await open('a');
    await settle();
    expect(provider.created).toHaveLength(2);
    expect(sessions.pool.size).toBe(1);
  });

  it('become the next session, which waits for no start, and are replaced', async () => {
    const { provider, open, settle, store, sessions, clock } = pooledHouse();
    await open('a');
    await clock.advance(5000);
    const ready = provider.created[1];
    // No further sandbox can be made: the session gets the one that is there.
    const start = gate();
    provider.createGate = start.promise;
    const lease = await open('b');
    expect(lease.sandbox).toBe(ready);
    expect(store.rows.get(lease.sandbox.id)).toMatchObject({ sessionId: named('b').sessionId });
    expect(lease.session.row.sandboxId).toBe(ready?.id);
    start.open();
    await settle();
    expect(sessions.pool.size).toBe(1);
  });

  it('are no session once they are older than they may be, and are ended when that is told', async () => {
    const parts = pooledHouse();
    const { provider, sessions, settle } = parts;
    let age = 'old';
    const plan: SessionPlan = {
      ...parts.plan,
      pool: { resourceArn: key.resourceArn, max: 3, current: async ({ labels }) => labels.age === age },
      sandbox: async (id, signal) => ({ ...(await parts.plan.sandbox(id, signal)), labels: { age } }),
    };
    await parts.open('a', plan);
    await settle();
    // The control: as long as it is what it would be, a session gets it.
    expect((await parts.open('b', plan)).sandbox).toBe(provider.created[1]);
    await settle();
    const ready = () => sessions.pool.all().map(({ sandbox }) => provider.created.find(({ id }) => id === sandbox.id));
    const stale = ready();
    expect(stale).not.toEqual([]);
    age = 'new';
    // Nobody has told the pool.
    expect((await parts.open('c', plan)).sandbox.labels.age).toBe('new');
    await expect.poll(() => stale.every((sandbox) => sandbox?.stopped)).toBe(true);
    await settle();
    const fresh = ready();
    expect(fresh).not.toEqual([]);
    sessions.pool.renew();
    expect(sessions.pool.size).toBe(0);
    await expect.poll(() => fresh.every((sandbox) => sandbox?.stopped)).toBe(true);
    // Those of which nothing is told stay.
    await parts.open('d');
    await settle();
    sessions.pool.renew();
    expect(sessions.pool.size).toBeGreaterThan(0);
  });

  it('are given to one session each, however many come at once, and no more are made than the bound', async () => {
    const { provider, open, settle, clock, sessions } = pooledHouse(3);
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => open(name)));
    await clock.advance(5000);
    expect(sessions.pool.size).toBe(3);
    const leases = await Promise.all(['f', 'g', 'h', 'i', 'j'].map((name) => open(name)));
    expect(new Set(leases.map(({ sandbox }) => sandbox)).size).toBe(5);
    await settle();
    expect(new Set(provider.created.map(({ id }) => id)).size).toBe(provider.created.length);
  });

  it('have no session, no row and no usage before they are taken', async () => {
    const { open, settle, clock, store, samples, provider, sessions } = pooledHouse();
    await open('a');
    await settle();
    const ready = provider.created[1];
    if (!ready) throw new Error('unreachable');
    await clock.advance(minutes(5));
    expect(store.rows.has(ready.id)).toBe(false);
    expect(samples.some(({ sandboxId }) => sandboxId === ready.id)).toBe(false);
    ready.used = { cpuSeconds: 40, memoryHighWaterBytes: 2048 };
    const lease = await open('b');
    expect(lease.sandbox).toBe(ready);
    const began = clock.now();
    ready.used = { cpuSeconds: 42, memoryHighWaterBytes: 4096 };
    await sessions.stop(named('b'));
    expect(samples.filter(({ sandboxId }) => sandboxId === ready.id).at(-1)).toMatchObject({
      sessionId: named('b').sessionId,
      cpuSeconds: 2,
      memoryHighWaterBytes: 4096,
      startedAt: began,
      final: true,
    });
  });

  it('begin their idle time and their lifetime when they are taken', async () => {
    const { open, settle, clock, sessions } = pooledHouse(1, { poolIdleMs: minutes(1000) });
    (await open('a')).release();
    await settle();
    await clock.advance(minutes(14));
    await open('b');
    await clock.advance(minutes(479));
    expect(sessions.get(named('b'))?.state).toBe('active');
    await clock.advance(minutes(2));
    expect(sessions.get(named('b'))).toBeUndefined();
  });

  it('are not taken when they do not answer: the session gets one that does', async () => {
    const { open, settle, provider, plan } = pooledHouse();
    let hangs = 0;
    const health: SessionPlan['health'] = async () => {
      hangs -= 1;
      if (hangs >= 0) throw new HealthFailure('hangs', false);
      return 'healthy';
    };
    await open('a', { ...plan, health });
    await settle();
    const ready = provider.created[1];
    hangs = 1;
    expect((await open('b', { ...plan, health })).sandbox).not.toBe(ready);
    await settle();
    expect(ready?.stopped).toBe(true);
  });

  it('that end by themselves are replaced, ever more slowly, until one serves', async () => {
    const { open, settle, provider, clock } = pooledHouse();
    await open('a');
    await settle();
    const endAll = (): void => {
      for (const sandbox of provider.running.slice(1)) sandbox.exit({ exitCode: 1, outOfMemory: false });
    };
    const made: number[] = [];
    for (let second = 0; second < 300; second += 1) {
      endAll();
      await clock.advance(1000);
      made.push(provider.created.length);
    }
    // At once for a while would be three hundred; twice as long each time is eight or nine.
    expect(made.at(-1)).toBeLessThan(14);
    expect(made.at(-1)).toBeGreaterThan(6);
    expect(provider.running.length).toBeLessThanOrEqual(2);
  });

  it('are given up when no session came for long, and when the version or the resource is replaced', async () => {
    const { open, settle, provider, clock, sessions, plan } = pooledHouse(3, { poolIdleMs: minutes(10) });
    await open('a');
    await settle();
    await clock.advance(minutes(10));
    expect(sessions.pool.size).toBe(0);
    expect(provider.running).toHaveLength(1);

    await open('b');
    await open('c', { ...plan, version: '2' });
    await settle();
    expect(sessions.pool.size).toBe(2);
    sessions.pool.retain(key.resourceArn, ['2']);
    await settle();
    expect(sessions.pool.size).toBe(1);
    expect(provider.running).toHaveLength(4);
    await sessions.stopAll(key.resourceArn, 'deleted');
    await settle();
    expect(provider.running).toHaveLength(0);
  });

  it('that could not be removed are tried again', async () => {
    const { open, settle, provider, clock, sessions } = pooledHouse();
    await open('a');
    await settle();
    const ready = provider.created[1];
    if (!ready) throw new Error('unreachable');
    ready.stop = () => Promise.reject(new Error('its mount is busy'));
    const before = provider.swept.length;
    await clock.advance(minutes(1));
    expect(provider.swept).toHaveLength(before);
    sessions.pool.retain(key.resourceArn, []);
    await clock.advance(minutes(1));
    expect(provider.swept.length).toBeGreaterThan(before);
  });

  it('of one version never serve another', async () => {
    const { open, settle, provider, plan } = pooledHouse();
    await open('a');
    await settle();
    const ready = provider.created[1];
    expect((await open('b', { ...plan, version: '2' })).sandbox).not.toBe(ready);
    const other = { ...plan, pool: { resourceArn: `${key.resourceArn}-other`, max: 3 } };
    expect((await open('c', other)).sandbox).not.toBe(ready);
    expect((await open('d')).sandbox).toBe(ready);
  });

  it('stay when the id turns out to be taken, and are removed when the database fails', async () => {
    const { open, settle, store, sessions, provider } = pooledHouse();
    await open('a');
    await settle();
    const ready = provider.created[1];
    const { cpuSecondsBefore, ...row } = {
      ...named('b'),
      sandboxId: 'theirs',
      version: '1',
      port: 1,
      createdAt: 0,
      cpuSecondsBefore: 0,
      kind: 'toy',
    };
    const lifecycle = { idleSeconds: 1, maxLifetimeSeconds: 1 };
    const other = { serverId: 'another', epoch: 2, held: () => true };
    await store.begin({ ...row, cpuSecondsBefore, lifecycle }, other);
    await expect(open('b')).rejects.toThrow('held by the server another');
    expect(sessions.pool.size).toBe(1);
    expect([...store.rows.values()].find(({ sandboxId }) => sandboxId === 'theirs')?.endedAt).toBeUndefined();
    expect((await open('c')).sandbox).toBe(ready);
    await settle();
    store.begin = () => Promise.reject(new Error('the database is away'));
    await expect(open('d')).rejects.toThrow('away');
    await settle();
    expect(provider.created[2]?.stopped).toBe(true);
  });

  it('get what belongs to the session before its first request; a failure of that fails the start alone', async () => {
    const { open, settle, provider, plan, sessions } = pooledHouse();
    const attached: string[] = [];
    const withStorage: SessionPlan = {
      ...plan,
      volumes: {
        holds: async ({ sessionId }) => sessionId === named('old').sessionId,
        attach: async ({ sandboxId, sessionId }) => void attached.push(`${sandboxId} ${sessionId}`),
        diskBytes: async () => 0,
        detach: async () => undefined,
      },
    };
    await open('a', withStorage);
    await settle();
    const ready = provider.created[1];
    const lease = await open('b', withStorage);
    expect(lease.sandbox).toBe(ready);
    expect(attached.at(-1)).toBe(`${ready?.id} ${named('b').sessionId}`);
    await settle();
    const broken = {
      ...withStorage,
      volumes: {
        holds: async () => false,
        attach: () => Promise.reject(new Error('no mount')),
        diskBytes: async () => 0,
        detach: async () => undefined,
      },
    };
    await expect(open('c', broken)).rejects.toThrow('no mount');
    expect(provider.created[2]?.stopped).toBe(true);
    expect(sessions.get(named('c'))).toBeUndefined();
    expect(sessions.get(named('b'))?.state).toBe('active');

    // Who has something already gets a sandbox that boots with it, also when one stands ready.
    await settle();
    const standing = [...provider.created];
    const own = await open('old', withStorage);
    expect(standing).not.toContain(own.sandbox);
    expect(attached.at(-1)).toBe(`${own.sandbox.id} ${named('old').sessionId}`);
    expect(standing).toContain((await open('young', withStorage)).sandbox);
  });

  it('wait while sessions wait for a start, and while the machine has no room', async () => {
    const { open, settle, provider, sessions } = pooledHouse(3, { maxConcurrentStarts: 1, maxQueuedStarts: 8 });
    const start = gate();
    provider.createGate = start.promise;
    const calls = ['a', 'b', 'c'].map((name) => open(name));
    await settle();
    start.open();
    await Promise.all(calls);
    expect(provider.created.slice(0, 3).map(({ id }) => id)).toEqual(
      ['a', 'b', 'c'].map((name) => sessions.get(named(name))?.row.sandboxId),
    );
  });

  it('are gone when the server stops, also those that are being made', async () => {
    const { open, settle, provider, sessions } = pooledHouse();
    await open('a');
    const start = gate();
    provider.createGate = start.promise;
    await settle();
    const closing = sessions.close();
    start.open();
    await closing;
    expect(provider.running).toEqual([]);
    expect(sessions.pool.size).toBe(0);
  });

  it('are warmed up once before anybody has them, and so is one that is made for its session', async () => {
    const { plan, open, settle, sessions } = pooledHouse();
    const warmed: string[] = [];
    const warm = { ...plan, warmUp: async ({ id }: { id: string }) => void warmed.push(id) };
    const first = await open('a', warm);
    expect(warmed).toEqual([first.sandbox.id]);
    await settle();
    expect(warmed).toHaveLength(2);
    expect(sessions.pool.size).toBe(1);
    const second = await open('b', warm);
    expect(warmed.filter((id) => id === second.sandbox.id)).toHaveLength(1);
  });

  it('are none where the warm-up fails, and neither is a session', async () => {
    const { plan, open, provider } = pooledHouse();
    const cold = { ...plan, warmUp: () => Promise.reject(new Error('cold')) };
    await expect(open('a', cold)).rejects.toThrow('cold');
    expect(provider.created.every((one) => one.stopped)).toBe(true);
  });

  it('can be prepared for a version that nobody has used: the first session gets it', async () => {
    const { plan, open, provider, sessions, settle } = pooledHouse();
    await sessions.pool.prepare(plan, never);
    expect(sessions.pool.size).toBe(1);
    await settle();
    expect(provider.created).toHaveLength(1);
    const lease = await open('a');
    expect(lease.sandbox).toBe(provider.created[0]);
  });

  it('are not left behind by a preparation where none are kept, or that fails', async () => {
    const { plan, provider, sessions, pooled, settle } = pooledHouse();
    await sessions.pool.prepare(pooled(0), never);
    const cold = { ...plan, warmUp: () => Promise.reject(new Error('cold')) };
    await expect(sessions.pool.prepare(cold, never)).rejects.toThrow('cold');
    await settle();
    expect(sessions.pool.size).toBe(0);
    expect(provider.created.map((one) => one.stopped)).toEqual([true, true]);
  });
});
