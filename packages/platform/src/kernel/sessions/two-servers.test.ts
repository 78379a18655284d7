import { describe, expect, it } from 'vitest';
import { FakeClock } from '../fake-clock.ts';
import { HeldElsewhereError, NotHeldError } from './server-hold.ts';
import { FakeProvider } from './testing/fake-provider.ts';
import { MemorySessionStore } from './testing/memory-session-store.ts';
import { gate, house, key, never } from './testing/session-house.ts';

/** Two servers on one store and one provider. */
function servers() {
  const shared = { clock: new FakeClock(), provider: new FakeProvider(), store: new MemorySessionStore() };
  const [a, b] = ['a', 'b'].map((serverId) => house({}, { ...shared, serverId }));
  if (!a || !b) throw new Error('unreachable');
  return { ...shared, a, b };
}

describe('two servers on one database', () => {
  it('make one sandbox for an id that both are asked for at once, and each tells who has it', async () => {
    const { a, b, provider } = servers();
    const calls = Array.from({ length: 20 }, (_, i) => (i % 2 ? a : b).acquire());
    const settled = await Promise.allSettled(calls);
    expect(provider.created).toHaveLength(1);
    const winner = provider.created[0]?.id.startsWith('a') ? 'a' : 'b';
    for (const [i, result] of settled.entries()) {
      if ((i % 2 ? 'a' : 'b') === winner) expect(result.status).toBe('fulfilled');
      else expect(result).toMatchObject({ reason: expect.any(HeldElsewhereError) });
    }
    const loser = winner === 'a' ? b : a;
    expect(loser.sessions.size).toBe(0);
    await expect(loser.acquire()).rejects.toMatchObject({ holder: { serverId: winner } });
    await expect(loser.sessions.stop(key)).rejects.toBeInstanceOf(HeldElsewhereError);
    await expect(loser.sessions.find(key)).rejects.toBeInstanceOf(HeldElsewhereError);
  });

  it('hand an id over when its session has ended', async () => {
    const { a, b, provider } = servers();
    await a.acquire();
    await a.sessions.stop(key);
    await b.acquire();
    expect(provider.running.map(({ id }) => id)).toEqual(['b-sandbox-1']);
  });

  it('ask no database for a session that lives here', async () => {
    const { a, store } = servers();
    await a.acquire();
    const refuse = (): Promise<never> => Promise.reject(new Error('the database was asked'));
    Object.assign(store, { begin: refuse, activate: refuse, holder: refuse, live: refuse, list: refuse });
    expect(a.sessions.tryAcquire(key)).toBeDefined();
    await expect(a.acquire()).resolves.toBeDefined();
  });

  it('that lost its hold answers nothing, gives everything up, and begins again when it has it back', async () => {
    const { a, provider, store } = servers();
    await a.acquire();
    a.held.now = false;
    expect(a.sessions.tryAcquire(key)).toBeUndefined();
    await expect(a.acquire()).rejects.toBeInstanceOf(NotHeldError);
    await a.sessions.giveUp();
    expect(provider.running).toEqual([]);
    expect([...store.rows.values()].map((row) => row.endReason)).toEqual(['lapsed']);
    a.held.now = true;
    await a.acquire();
    expect(provider.running).toHaveLength(1);
  });

  it('loses a session that another ended while it started: no request reaches its sandbox', async () => {
    const { a, provider, store } = servers();
    const start = gate();
    provider.createGate = start.promise;
    const call = a.acquire();
    await new Promise((resolve) => setImmediate(resolve));
    // What a deposition does.
    for (const row of store.rows.values()) await store.end(row.sandboxId, 'lost', 1);
    start.open();
    await expect(call).rejects.toBeInstanceOf(NotHeldError);
    expect(provider.running).toEqual([]);
  });

  it('lists the sessions of all servers, each as what it is', async () => {
    const { a, b } = servers();
    const other = { ...key, sessionId: 'b'.repeat(33) };
    await a.acquire();
    await b.acquire(other, never);
    const kind = 'toy';
    const live = [
      { ...key, kind, serverId: 'a', state: 'active' },
      { ...other, kind, serverId: 'b', state: 'active' },
    ];
    for (const { sessions } of [a, b]) {
      expect(await sessions.everywhere(key.resourceArn)).toEqual(
        expect.arrayContaining(live.map((one) => expect.objectContaining(one))),
      );
      // Metrics of a server are of its own.
      expect(sessions.countsByKind()).toEqual({ toy: 1 });
    }
    await b.sessions.stop(other);
    expect(await a.sessions.everywhere(key.resourceArn)).toMatchObject([{ sessionId: key.sessionId }]);
  });

  it('takes up its own sessions after a restart, and nobody else’s', async () => {
    const { a, b, clock, provider, store } = servers();
    await a.acquire();
    await b.acquire({ ...key, sessionId: 'b'.repeat(33) });
    provider.survivors = [...provider.running];
    const again = house({}, { serverId: 'a', clock, provider: new FakeProvider(), store });
    again.provider.survivors = provider.running.filter(({ id }) => id.startsWith('a'));
    expect(await again.sessions.recover()).toEqual({ resumed: 1, ended: 0 });
    expect(again.sessions.tryAcquire(key)?.sandbox.id).toBe('a-sandbox-1');
    await expect(again.acquire({ ...key, sessionId: 'b'.repeat(33) }, never)).rejects.toBeInstanceOf(
      HeldElsewhereError,
    );
  });
});

describe('a clock that jumps', () => {
  it('ends no session, forwards or back, and loses no second of use', async () => {
    const { acquire, clock, sessions, samples } = house();
    (await acquire()).release();
    const began = clock.now();
    await clock.advance(60_000);
    for (const hours of [24, -48, 24]) {
      clock.jump(hours * 3_600_000);
      await clock.advance(60_000);
      expect(sessions.size).toBe(1);
    }
    const [last] = samples.slice(-1);
    expect((last?.at ?? 0) - began).toBeGreaterThanOrEqual(230_000);
    expect((last?.at ?? 0) - began).toBeLessThanOrEqual(240_000);
    await clock.advance(15 * 60_000);
    expect(sessions.size).toBe(0);
  });

  it('does not prolong or end what is taken up after a restart', async () => {
    const { clock, provider, store, sessions, acquire } = house();
    await acquire();
    await clock.advance(1000);
    provider.survivors = [...provider.running];
    const again = house({}, { serverId: 'mine', clock, provider, store });
    // Set back while the server was down: the session has lived for no time then, not for less than none.
    clock.jump(-3_600_000);
    await again.sessions.recover();
    expect(again.sessions.size).toBe(1);
    await clock.advance(480 * 60_000 + 2000);
    expect(again.sessions.size).toBe(0);
    expect(sessions.size).toBe(0);
  });
});
