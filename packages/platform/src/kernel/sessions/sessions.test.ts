import { describe, expect, it } from 'vitest';
import { HealthFailure } from './health.ts';
import { FakeSandbox } from './testing/fake-provider.ts';
import { gate, house, key, minutes } from './testing/session-house.ts';

describe('sessions', () => {
  it('gives the same id the same sandbox, and another id another', async () => {
    const { acquire, provider, sessions, starts } = house();
    const first = await acquire();
    first.release();
    expect((await acquire()).sandbox).toBe(first.sandbox);
    expect(sessions.tryAcquire(key)?.sandbox).toBe(first.sandbox);
    expect((await acquire({ ...key, sessionId: 't'.repeat(33) })).sandbox).not.toBe(first.sandbox);
    expect(provider.created).toHaveLength(2);
    expect(starts).toEqual(['ready after 0 s', 'ready after 0 s']);
  });

  it('keeps the same id of another owner apart', async () => {
    const { acquire, sessions } = house();
    const mine = await acquire();
    const other = {
      ...key,
      accountId: '999999999999',
      resourceArn: key.resourceArn.replace('123456789012', '999999999999'),
    };
    expect(sessions.tryAcquire(other)).toBeUndefined();
    expect((await acquire(other)).sandbox).not.toBe(mine.sandbox);
  });

  it('starts one sandbox for a hundred first calls at once', async () => {
    const { acquire, provider } = house();
    const start = gate();
    provider.createGate = start.promise;
    const calls = Array.from({ length: 100 }, () => acquire());
    start.open();
    const leases = await Promise.all(calls);
    expect(new Set(leases.map((lease) => lease.sandbox)).size).toBe(1);
    expect(provider.created).toHaveLength(1);
  });

  it('ends after 15 idle minutes, with memory and disk gone, and the next use is a fresh sandbox', async () => {
    const { acquire, clock, provider, store, sessions } = house();
    const lease = await acquire();
    lease.release();
    await clock.advance(minutes(15) - 2000);
    expect(sessions.size).toBe(1);
    await clock.advance(3000);
    expect(sessions.size).toBe(0);
    expect(provider.created[0]?.stopped).toBe(true);
    expect([...store.rows.values()][0]?.endReason).toBe('idle');
    expect((await acquire()).sandbox.id).not.toBe(lease.sandbox.id);
  });

  it('does not count a request under way, or HealthyBusy, as idle', async () => {
    const { acquire, clock, agent, sessions } = house();
    const lease = await acquire();
    await clock.advance(minutes(60));
    expect(sessions.size).toBe(1);
    lease.release();
    agent.health = 'busy';
    await clock.advance(minutes(60));
    expect(sessions.size).toBe(1);
    agent.health = 'healthy';
    await clock.advance(minutes(16));
    expect(sessions.size).toBe(0);
  });

  it('ends after 8 hours even in the middle of a request', async () => {
    const { acquire, clock, store, sessions } = house();
    await acquire();
    await clock.advance(minutes(480) - 2000);
    expect(sessions.size).toBe(1);
    await clock.advance(3000);
    expect(sessions.size).toBe(0);
    expect([...store.rows.values()][0]?.endReason).toBe('lifetime');
  });

  it('ends by an explicit stop; a call that meets the teardown waits for a fresh sandbox', async () => {
    const { acquire, sessions, provider } = house();
    const lease = await acquire();
    const teardown = gate();
    if (provider.created[0]) provider.created[0].stopGate = teardown.promise;
    const stopping = sessions.stop(key);
    const next = acquire();
    await new Promise((resolve) => setImmediate(resolve));
    expect(provider.created).toHaveLength(1);
    teardown.open();
    expect(await stopping).toBe(true);
    expect((await next).sandbox).not.toBe(lease.sandbox);
    expect(provider.created).toHaveLength(2);
  });

  it('ends a session that is stopped while it starts, and its caller gets a fresh one', async () => {
    const { acquire, sessions, provider } = house();
    const start = gate();
    provider.createGate = start.promise;
    const call = acquire();
    await new Promise((resolve) => setImmediate(resolve));
    const stopping = sessions.stop(key);
    start.open();
    expect(await stopping).toBe(true);
    expect((await call).session.row.sandboxId).toBe('sandbox-2');
  });

  it('ends after three failed pings, not before; slow pings of an agent at work do not count', async () => {
    const { acquire, clock, agent, store, sessions } = house();
    const lease = await acquire();
    agent.health = new HealthFailure('no answer in time', false);
    await clock.advance(60_000);
    expect(sessions.size).toBe(1);
    lease.release();
    await clock.advance(4000);
    expect(sessions.size).toBe(1);
    await clock.advance(4000);
    expect(sessions.size).toBe(0);
    expect([...store.rows.values()][0]?.endReason).toBe('unhealthy');
  });

  it('ends an agent whose port is closed even while a request is under way', async () => {
    const { acquire, clock, agent, sessions } = house();
    await acquire();
    agent.health = new HealthFailure('refused', true);
    await clock.advance(8000);
    expect(sessions.size).toBe(0);
  });

  it('ends at once when the agent exits', async () => {
    const { acquire, provider, clock, sessions } = house();
    await acquire();
    provider.created[0]?.exit({ exitCode: 3, outOfMemory: false });
    await clock.advance(0);
    expect(sessions.size).toBe(0);
  });

  it('tells a start that fails with the exit status and the last lines, and leaves nothing', async () => {
    const { acquire, agent, provider, sessions, store } = house();
    agent.health = new HealthFailure('refused', true);
    const call = acquire();
    const failure = expect(call).rejects.toThrow(/exited with status 3[\s\S]*last words/);
    await new Promise((resolve) => setImmediate(resolve));
    provider.created[0]?.exit({ exitCode: 3, outOfMemory: false });
    await failure;
    expect(sessions.size).toBe(0);
    expect(provider.created[0]?.stopped).toBe(true);
    expect([...store.rows.values()][0]?.endReason).toBe('start-failed');
  });

  it('tells an agent that never opens its port', async () => {
    const { acquire, agent, clock, sessions, starts } = house();
    agent.health = new HealthFailure('refused', true);
    const failure = expect(acquire()).rejects.toThrow(
      /did not answer GET \/ping on port 8080 within 30 s.* It must listen on 0\.0\.0\.0:8080\./,
    );
    await clock.advance(31_000);
    await failure;
    expect(sessions.size).toBe(0);
    expect(starts).toEqual([expect.stringMatching(/^failed after 30(\.\d+)? s$/)]);
  });

  it('queues starts with a bound and refuses beyond it', async () => {
    const { acquire, provider } = house({ maxConcurrentStarts: 1, maxQueuedStarts: 2 });
    const start = gate();
    provider.createGate = start.promise;
    const calls = ['a', 'b', 'c', 'd'].map((c) => acquire({ ...key, sessionId: c.repeat(33) }));
    const outcomes = Promise.allSettled(calls);
    await new Promise((resolve) => setImmediate(resolve));
    start.open();
    expect((await outcomes).map((o) => (o.status === 'fulfilled' ? 'ok' : o.reason.name))).toEqual([
      'ok',
      'ok',
      'ok',
      'QueueFullError',
    ]);
  });

  it('takes five hundred first calls at once: so many start, so many wait, the rest are told, and nobody is lost', async () => {
    const { acquire, provider, sessions, store } = house({ maxConcurrentStarts: 4, maxQueuedStarts: 100 });
    const start = gate();
    provider.createGate = start.promise;
    const ids = Array.from({ length: 500 }, (_, i) => ({ ...key, sessionId: `storm-${String(i).padStart(30, '0')}` }));
    let told = 0;
    const calls = ids.map((id) => acquire(id));
    for (const call of calls)
      call.catch(() => {
        told += 1;
      });
    const outcomes = Promise.allSettled(calls);
    // No sandbox is ready before the last of those who cannot wait has been told.
    for (let turn = 0; told < 396 && turn < 1000; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    start.open();
    const refused = ids.filter((_, i) => i >= 104);
    const settled = await outcomes;
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(104);
    for (const outcome of settled)
      if (outcome.status === 'rejected') expect(outcome.reason.message).toMatch(/100 are already waiting/);
    expect(provider.running).toHaveLength(104);
    expect(sessions.size).toBe(104);
    // Whoever comes again is served, and no refusal left a row behind that would be in the way.
    expect([...store.rows.values()].filter((row) => row.endedAt === undefined)).toHaveLength(104);
    for (let i = 0; i < refused.length; i += 100) await Promise.all(refused.slice(i, i + 100).map((id) => acquire(id)));
    expect(provider.running).toHaveLength(500);
    expect(new Set(provider.running.map(({ id }) => id)).size).toBe(500);
  });

  it('samples usage while it lives and once more at its end', async () => {
    const { acquire, clock, sessions, samples } = house();
    await acquire();
    await clock.advance(11_000);
    expect(samples.length).toBeGreaterThanOrEqual(2);
    await sessions.stop(key);
    expect(samples.at(-1)).toMatchObject({ final: true, cpuSeconds: 1, memoryHighWaterBytes: 1024 });
  });

  it('stores an end that the database refused as soon as it is back, before the id is used again', async () => {
    const { acquire, sessions, store } = house();
    await acquire();
    const down = new Error('the database is down');
    const end = store.end.bind(store);
    store.end = () => Promise.reject(down);
    await sessions.stop(key);
    await expect(acquire()).rejects.toBe(down);
    store.end = end;
    await acquire();
    expect([...store.rows.values()].map((row) => row.endReason)).toEqual(['stopped', undefined]);
  });

  it('takes up what survived a restart, ends what did not, removes what nobody knows', async () => {
    const { provider, store, sessions, plan, acquire } = house();
    const row = {
      ...key,
      kind: 'toy',
      version: '1',
      lifecycle: plan.lifecycle,
      port: 8080,
      createdAt: 0,
      cpuSecondsBefore: 0,
    };
    const mine = { serverId: 'mine', epoch: 1, held: () => true };
    await store.begin({ ...row, sandboxId: 'alive' }, mine);
    await store.activate('alive', 1);
    await store.begin({ ...row, sessionId: 'u'.repeat(33), sandboxId: 'half-started' }, mine);
    await store.begin({ ...row, sessionId: 'v'.repeat(33), sandboxId: 'gone' }, mine);
    await store.activate('gone', 1);
    const [alive, half, unknown] = ['alive', 'half-started', 'unknown'].map(
      (id) => new FakeSandbox({ id, labels: {} }),
    );
    if (!alive || !half || !unknown) throw new Error('unreachable');
    provider.survivors = [alive, half, unknown];
    expect(await sessions.recover()).toEqual({ resumed: 1, ended: 2 });
    expect([alive.stopped, half.stopped, unknown.stopped]).toEqual([false, true, true]);
    expect((await acquire()).sandbox).toBe(alive);
    expect(provider.swept[0]).toEqual(new Set(['alive']));
  });

  it('starts although something of an earlier run cannot be removed, and tries that again until nothing is left', async () => {
    const { provider, sessions, acquire, clock } = house();
    provider.sweepFailsWith = new Error('in use');
    expect(await sessions.recover()).toEqual({ resumed: 0, ended: 0 });
    await acquire();
    await clock.advance(31_000);
    expect(provider.swept).toEqual([new Set(), undefined]);
    await clock.advance(40_000);
    expect(provider.swept).toHaveLength(2);
    provider.sweepFailsWith = undefined;
    await clock.advance(30_000);
    expect(provider.swept).toHaveLength(3);
    await clock.advance(3_600_000);
    expect(provider.swept).toHaveLength(3);
  });

  it('tries again to remove a sandbox that could not be removed at its end', async () => {
    const { provider, sessions, acquire, clock } = house();
    await acquire();
    const [sandbox] = provider.created;
    if (sandbox) sandbox.stopGate = Promise.reject(new Error('in use'));
    await sessions.stop(key);
    expect(provider.swept).toEqual([]);
    await clock.advance(31_000);
    expect(provider.swept).toEqual([undefined]);
  });
});
