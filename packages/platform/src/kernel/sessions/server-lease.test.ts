import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../fake-clock.ts';
import { LapseWatch } from './lapse-watch.ts';
import { ServerLease } from './server-lease.ts';
import type { ServerRecord } from './server-store.ts';
import { MemoryServerStore } from './testing/memory-server-store.ts';

const LEASE_MS = 60_000;
const down = (): Promise<never> => Promise.reject(new Error('the database is down'));

async function server(name: string, store: MemoryServerStore, { clock = new FakeClock(), shared = true } = {}) {
  const lost: number[] = [];
  const beats: number[] = [];
  const left: string[] = [];
  const leftAt: number[] = [];
  const lease = new ServerLease({
    store,
    serverId: name,
    shared,
    leaseMs: LEASE_MS,
    beat: async (ms) => void beats.push(ms),
    clock,
    log: pino({ level: 'silent' }),
  });
  await lease.open();
  lease.start(
    async () => void lost.push(clock.monotonic()),
    (serverId, epoch) => {
      left.push(serverId);
      leftAt.push(epoch);
    },
  );
  return { lease, lost, beats, left, leftAt, clock };
}

describe('the hold of a server on its sessions', () => {
  it('is renewed for as long as the database answers', async () => {
    const { lease, lost, clock, beats } = await server('a', new MemoryServerStore());
    await clock.advance(10 * LEASE_MS);
    expect(lease.held()).toBe(true);
    expect(lost).toEqual([]);
    expect(beats.length).toBeGreaterThan(70);
  });

  it('never lapses on a database of its own, and asks nobody', async () => {
    const store = new MemoryServerStore();
    const { lease, clock, beats } = await server('a', store, { shared: false });
    store.renew = down;
    await clock.advance(100 * LEASE_MS);
    expect(lease.held()).toBe(true);
    expect(beats).toEqual([]);
  });

  it('outlasts a short absence of the database, with nothing ended', async () => {
    const store = new MemoryServerStore();
    const { lease, lost, clock } = await server('a', store);
    const renew = store.renew.bind(store);
    store.renew = down;
    await clock.advance(LEASE_MS / 2);
    store.renew = renew;
    await clock.advance(LEASE_MS * 3);
    expect(lease.held()).toBe(true);
    expect(lost).toEqual([]);
  });

  it('ends every session once before anybody else may begin one, and comes back with the database', async () => {
    const store = new MemoryServerStore();
    const { lease, lost, clock } = await server('a', store);
    const { epoch } = lease;
    const [renew, claim] = [store.renew.bind(store), store.claim.bind(store)];
    store.renew = down;
    store.claim = down;
    const began = clock.monotonic();
    await clock.advance(LEASE_MS * 5);
    expect(lost).toHaveLength(1);
    expect(lost[0]).toBeLessThan(began + LEASE_MS);
    expect(lease.held()).toBe(false);
    store.renew = renew;
    store.claim = claim;
    await clock.advance(LEASE_MS);
    expect(lease.held()).toBe(true);
    expect(lease.epoch).toBeGreaterThan(epoch);
    store.renew = down;
    store.claim = down;
    await clock.advance(LEASE_MS);
    expect(lost).toHaveLength(2);
  });

  it('does not lapse by a jump of the wall clock, forwards or back', async () => {
    const { lease, lost, clock } = await server('a', new MemoryServerStore());
    for (const ms of [86_400_000, -2 * 86_400_000]) {
      clock.jump(ms);
      await clock.advance(LEASE_MS * 2);
    }
    expect(lease.held()).toBe(true);
    expect(lost).toEqual([]);
  });

  it('passes to others when the server is silent for a whole lease, not before', async () => {
    const store = new MemoryServerStore();
    const dead = await server('dead', store);
    const deposed: string[] = [];
    store.onDeposed = (id) => deposed.push(id);
    const other = await server('other', store);
    await other.clock.advance(LEASE_MS / 2);
    await dead.clock.advance(LEASE_MS / 4);
    // The dead one's clock stands from here on.
    await other.clock.advance(LEASE_MS * 0.9);
    expect(deposed).toEqual([]);
    await other.clock.advance(LEASE_MS * 0.5);
    expect(deposed).toEqual(['dead']);
    // It was only stopped, and goes on: the first thing that it learns is that its sessions are gone.
    await dead.clock.advance(LEASE_MS / 4);
    expect(dead.lost).toHaveLength(1);
    expect(dead.lease.held()).toBe(true);
    expect(other.lost).toEqual([]);
  });

  it('is said to be over once to every other server, whoever ended it, and to none while it goes on', async () => {
    const store = new MemoryServerStore();
    const [stalled, one, two] = await Promise.all(['stalled', 'one', 'two'].map((name) => server(name, store)));
    if (!stalled || !one || !two) throw new Error('unreachable');
    for (let eighth = 0; eighth < 16; eighth += 1)
      for (const { clock } of [stalled, one, two]) await clock.advance(LEASE_MS / 8);
    expect([one.left, two.left]).toEqual([[], []]);
    for (let eighth = 0; eighth < 16; eighth += 1)
      for (const { clock } of [one, two]) await clock.advance(LEASE_MS / 8);
    expect([one.left, two.left]).toEqual([['stalled'], ['stalled']]);
    // Its next life is another.
    await stalled.clock.advance(LEASE_MS / 8);
    for (let eighth = 0; eighth < 16; eighth += 1)
      for (const { clock } of [stalled, one, two]) await clock.advance(LEASE_MS / 8);
    expect(one.left).toEqual(['stalled']);
    await stalled.lease.close();
    await one.clock.advance(LEASE_MS / 8);
    expect(one.left).toEqual(['stalled', 'stalled']);
  });

  it('is said to be over up to the life before the one that goes on', async () => {
    const store = new MemoryServerStore();
    const [restarted, one] = [await server('restarted', store), await server('one', store)];
    await one.clock.advance(LEASE_MS / 8);
    const first = restarted.lease.epoch;
    await restarted.lease.open();
    await restarted.lease.open();
    await one.clock.advance(LEASE_MS / 8);
    const [left] = one.leftAt;
    expect(one.left).toEqual(['restarted']);
    // The life that came between two beats is over too.
    expect(left).toBeGreaterThan(first);
    expect(left).toBeLessThan(restarted.lease.epoch);
    await restarted.lease.close();
    await one.clock.advance(LEASE_MS / 8);
    expect(one.leftAt[1]).toBe(restarted.lease.epoch);
  });

  it('is taken leave of', async () => {
    const store = new MemoryServerStore();
    const { lease, clock, lost } = await server('a', store);
    await lease.close();
    await clock.advance(LEASE_MS * 2);
    expect([...store.servers.keys()]).toEqual([]);
    expect(lost).toEqual([]);
  });
});

describe('watching the beats of others', () => {
  const record = (beat: number, epoch = 1): ServerRecord => ({
    serverId: 'a',
    epoch,
    beat,
    leaseMs: 100,
    address: undefined,
  });

  it('tells a silent server after its lease, and one that moved or was born again never', () => {
    const watch = new LapseWatch();
    expect(watch.observe([record(1)], 0)).toEqual([]);
    expect(watch.observe([record(1)], 99)).toEqual([]);
    expect(watch.observe([record(2)], 100)).toEqual([]);
    expect(watch.observe([record(2, 2)], 199)).toEqual([]);
    expect(watch.observe([record(2, 2)], 298)).toEqual([]);
    expect(watch.observe([record(2, 2)], 299)).toEqual([record(2, 2)]);
  });

  it('begins anew with a server that was away', () => {
    const watch = new LapseWatch();
    watch.observe([record(1)], 0);
    watch.observe([], 50);
    expect(watch.observe([record(1)], 200)).toEqual([]);
  });
});
