import { expect, it } from 'vitest';
import { gate, house, key, never } from './testing/session-house.ts';

const MIB = 2 ** 20;
const named = (name: string) => ({ ...key, sessionId: name.repeat(33) });

it('ends the session whose disk takes most, says why, and leaves the others', async () => {
  const { acquire, sessions, provider, store } = house();
  for (const name of ['a', 'b', 'c']) (await acquire(named(name))).release();
  const [a, b, c] = provider.created;
  if (!a || !b || !c) throw new Error('a sandbox is missing');
  Object.assign(a, { held: 20 * MIB });
  Object.assign(b, { held: 300 * MIB });
  Object.assign(c, { held: 100 * MIB });
  await sessions.evictLargest();
  await expect.poll(() => b.stopped).toBe(true);
  expect([a.stopped, c.stopped]).toEqual([false, false]);
  await expect.poll(() => store.rows.get(b.id)?.endReason).toBe('disk-full');
  expect(sessions.evicted).toBe(1);
});

it('counts what a session has in its storage', async () => {
  const { acquire, sessions, provider, plan } = house();
  (await acquire(named('a'))).release();
  const volumes = {
    holds: async () => true,
    attach: async () => undefined,
    diskBytes: async () => 200 * MIB,
    detach: async () => undefined,
  };
  (await sessions.acquire(named('b'), async () => ({ ...plan, volumes }), never)).release();
  const [a, b] = provider.created;
  if (!a || !b) throw new Error('a sandbox is missing');
  a.held = 100 * MIB;
  await sessions.evictLargest();
  await expect.poll(() => b.stopped).toBe(true);
  expect(a.stopped).toBe(false);
});

it('ends no other while one is going, for a while', async () => {
  const { acquire, sessions, provider, clock } = house();
  for (const name of ['a', 'b']) (await acquire(named(name))).release();
  const [a, b] = provider.created;
  if (!a || !b) throw new Error('a sandbox is missing');
  const stop = gate();
  Object.assign(a, { held: 300 * MIB, stopGate: stop.promise });
  Object.assign(b, { held: 200 * MIB });
  await sessions.evictLargest();
  await sessions.evictLargest();
  expect(sessions.evicted).toBe(1);
  await clock.advance(5000);
  await sessions.evictLargest();
  await expect.poll(() => b.stopped).toBe(true);
  expect(sessions.evicted).toBe(2);
  stop.open();
});

it('ends one that stands ready when it takes most, and none that takes next to nothing', async () => {
  const { sessions, provider, pooled, clock } = house();
  const lease = await sessions.acquire(key, async () => pooled(1), never);
  lease.release();
  await clock.advance(3000);
  await expect.poll(() => sessions.pool.size).toBe(1);
  const [, ready] = provider.created;
  if (!ready) throw new Error('none stands ready');
  ready.held = 15 * MIB;
  await sessions.evictLargest();
  expect([ready.stopped, sessions.evicted]).toEqual([false, 0]);
  ready.held = 16 * MIB;
  await sessions.evictLargest();
  await expect.poll(() => ready.stopped).toBe(true);
  expect([sessions.size, sessions.evicted]).toEqual([1, 1]);
});
