import { beforeEach, describe, expect, it } from 'vitest';
import { meteringMigrations } from '../metering/index.ts';
import type { Database } from '../storage/index.ts';
import { describeDatabases } from '../storage/testing/databases.ts';
import { NotHeldError, type ServerHold } from './server-hold.ts';
import type { SessionRow, SessionStore } from './session-store.ts';
import { createSqlServerStore } from './sql-server-store.ts';
import { createSqlSessionStore } from './sql-session-store.ts';
import { sessionMigrations } from './tables.ts';
import { MemorySessionStore } from './testing/memory-session-store.ts';
import type { UsageSample } from './usage.ts';
import { applyUsageSamples, readSessionUsage } from './usage-store.ts';

const arn = 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/a-0123456789';
const row = (sandboxId: string, sessionId = sandboxId, createdAt = 1): SessionRow => ({
  sandboxId,
  accountId: '123456789012',
  resourceArn: arn,
  sessionId,
  version: '1',
  lifecycle: { idleSeconds: 0.5, maxLifetimeSeconds: 28_800 },
  port: 8080,
  createdAt,
  cpuSecondsBefore: 0,
  kind: 'toy',
});
const mine: ServerHold = { serverId: 'mine', epoch: 1, held: () => true };

/** The rules of every session store. */
function sessionStoreContract(open: () => Promise<SessionStore>): void {
  let store: SessionStore;
  beforeEach(async () => {
    store = await open();
  });

  it('keeps a life from its begin to its end', async () => {
    await store.begin(row('one'), mine);
    expect(await store.live('mine')).toEqual([{ ...row('one'), active: false, activatedAt: undefined }]);
    await store.activate('one', 5);
    expect(await store.live('mine')).toEqual([{ ...row('one'), active: true, activatedAt: 5 }]);
    await store.end('one', 'idle', 9);
    expect(await store.live('mine')).toEqual([]);
    expect(await store.list(arn, 10)).toMatchObject([
      { sandboxId: 'one', state: 'ended', endReason: 'idle', endedAt: 9 },
    ]);
  });

  it('does not change a life that has ended', async () => {
    await store.begin(row('one'), mine);
    await store.end('one', 'stopped', 2);
    await store.end('one', 'lost', 3);
    await store.activate('one', 4);
    expect(await store.list(arn, 10)).toMatchObject([{ state: 'ended', endReason: 'stopped', endedAt: 2 }]);
  });

  it('gives an id to one of all who want it, and tells the others who has it', async () => {
    const wishes = Array.from({ length: 8 }, (_, i) => store.begin(row(`try-${i}`, 'wanted'), mine));
    const holders = await Promise.all(wishes);
    expect(holders.filter((holder) => holder === undefined)).toHaveLength(1);
    expect(holders.filter((holder) => holder?.serverId === 'mine')).toHaveLength(7);
    expect(await store.holder(arn, 'wanted')).toMatchObject({ serverId: 'mine', epoch: 1 });
    expect(await store.live('another')).toEqual([]);
    const [winner] = await store.live('mine');
    await store.end(winner?.sandboxId ?? '', 'idle', 1);
    expect(await store.holder(arn, 'wanted')).toBeUndefined();
    expect(await store.begin(row('next', 'wanted'), mine)).toBeUndefined();
  });

  it('tells which session lives in a sandbox', async () => {
    await store.begin(row('mine', 'wanted'), mine);
    const { kind, accountId, resourceArn, sessionId } = row('mine', 'wanted');
    expect(await store.inSandbox('mine')).toEqual({ kind, accountId, resourceArn, sessionId });
    expect(await store.inSandbox('another')).toBeUndefined();
    await store.end('mine', 'idle', 1);
    expect(await store.inSandbox('mine')).toBeUndefined();
  });

  it('takes a sandbox that is ready in one step, and never for two sessions', async () => {
    expect(await store.begin(row('ready', 'one'), mine, 7)).toBeUndefined();
    expect(await store.live('mine')).toMatchObject([{ sandboxId: 'ready', kind: 'toy', active: true, activatedAt: 7 }]);
    await expect(store.begin(row('ready', 'two'), mine, 8)).rejects.toThrow();
    await store.end('ready', 'idle', 9);
    await expect(store.begin(row('ready', 'two'), mine, 10)).rejects.toThrow();
  });

  it('tells that a row ended before its sandbox was ready', async () => {
    await store.begin(row('late'), mine);
    expect(await store.activate('late', 1)).toBe(true);
    await store.end('late', 'lost', 2);
    expect(await store.activate('late', 3)).toBe(false);
  });

  it('tells what of a resource lives, on whichever server', async () => {
    await store.begin(row('old', 'old', 1), mine);
    await store.begin(row('ready', 'ready', 2), mine, 7);
    await store.begin(row('gone', 'gone', 3), mine);
    await store.end('gone', 'idle', 4);
    expect(await store.of(arn)).toEqual([
      { ...row('ready', 'ready', 2), serverId: 'mine', state: 'active' },
      { ...row('old', 'old', 1), serverId: 'mine', state: 'starting' },
    ]);
    expect(await store.of(`${arn}-other`)).toEqual([]);
  });

  it('lists the newest first, so many at most', async () => {
    for (const at of [1, 2, 3]) await store.begin(row(`s${at}`, `s${at}`, at), mine);
    expect((await store.list(arn, 2)).map((s) => s.sandboxId)).toEqual(['s3', 's2']);
    expect(await store.list(`${arn}-other`, 2)).toEqual([]);
  });
}

describe('session store in memory', () => sessionStoreContract(async () => new MemorySessionStore()));

describeDatabases('session store', [...meteringMigrations, ...sessionMigrations], (database) => {
  sessionStoreContract(async () => {
    await database().exec(
      "DELETE FROM sessions; DELETE FROM servers; INSERT INTO servers VALUES ('mine', 1, 0, 1000, NULL)",
    );
    return createSqlSessionStore(database());
  });

  it('takes nothing from a server that was deposed, in whatever order the two come', async () => {
    const store = createSqlSessionStore(database());
    const servers = createSqlServerStore(database());
    for (let round = 0; round < 10; round += 1) {
      const serverId = `raced-${round}`;
      const record = { serverId, leaseMs: 1000, address: undefined };
      const hold = { serverId, epoch: await servers.claim(record), held: () => true };
      const begins = [1, 2, 3].map((n) => store.begin(row(`r${round}-${n}`, `${round}-${n}`), hold));
      const deposing = servers.depose({ ...record, epoch: hold.epoch, beat: 0 }, 5);
      await Promise.allSettled([...begins, deposing]);
      await expect(store.begin(row(`late-${round}`), hold)).rejects.toThrow(NotHeldError);
      expect(await store.live(serverId)).toEqual([]);
    }
  });

  it('takes usage samples in any order, and twice, to the same result', async () => {
    const sample = (at: number, cpuSeconds: number, memory: number, final = false): UsageSample => ({
      ...row('used'),
      startedAt: 1,
      at,
      cpuSeconds,
      memoryHighWaterBytes: memory,
      final,
    });
    const apply = (db: Database, samples: UsageSample[]) => db.transaction((tx) => applyUsageSamples(tx, samples));
    const all = [sample(10, 1, 100), sample(30, 3, 90, true), sample(20, 2, 300)];
    await apply(database(), all);
    await apply(database(), all.slice(0, 1));
    const [stored] = await database().query('SELECT * FROM session_usage WHERE sandbox_id = $1', ['used']);
    expect(stored).toMatchObject({ cpu_seconds: 3, memory_high_water_bytes: 300, last_sample_at: 30, final: true });
    const { accountId, resourceArn, sessionId, kind } = row('used');
    const of = (account: string, since: number) => readSessionUsage(database(), account, new Date(since), 10);
    const seen = { kind, resourceArn, sessionId, startedAt: 1, lastSampleAt: 30, cpuSeconds: 3 };
    expect(await of(accountId, 30)).toEqual([{ ...seen, memoryHighWaterBytes: 300, final: true }]);
    expect(await of(accountId, 31)).toEqual([]);
    expect(await of('another', 0)).toEqual([]);
  });
});
