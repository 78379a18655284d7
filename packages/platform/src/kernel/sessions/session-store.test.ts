import { beforeEach, describe, expect, it } from 'vitest';
import type { Database } from '../storage/index.ts';
import { describeDatabases } from '../storage/testing/databases.ts';
import type { SessionRow, SessionStore } from './session-store.ts';
import { createSqlSessionStore } from './sql-session-store.ts';
import { sessionMigrations } from './tables.ts';
import { MemorySessionStore } from './testing/memory-session-store.ts';
import type { UsageSample } from './usage.ts';
import { applyUsageSamples } from './usage-store.ts';

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
});

/** The rules of every session store. */
function sessionStoreContract(open: () => Promise<SessionStore>): void {
  let store: SessionStore;
  beforeEach(async () => {
    store = await open();
  });

  it('keeps a life from its begin to its end', async () => {
    await store.begin(row('one'));
    expect(await store.live()).toEqual([{ ...row('one'), active: false, activatedAt: undefined }]);
    await store.activate('one', 5);
    expect(await store.live()).toEqual([{ ...row('one'), active: true, activatedAt: 5 }]);
    await store.end('one', 'idle', 9);
    expect(await store.live()).toEqual([]);
    expect(await store.list(arn, 10)).toMatchObject([
      { sandboxId: 'one', state: 'ended', endReason: 'idle', endedAt: 9 },
    ]);
  });

  it('does not change a life that has ended', async () => {
    await store.begin(row('one'));
    await store.end('one', 'stopped', 2);
    await store.end('one', 'lost', 3);
    await store.activate('one', 4);
    expect(await store.list(arn, 10)).toMatchObject([{ state: 'ended', endReason: 'stopped', endedAt: 2 }]);
  });

  it('lists the newest first, so many at most', async () => {
    for (const at of [1, 2, 3]) await store.begin(row(`s${at}`, `s${at}`, at));
    expect((await store.list(arn, 2)).map((s) => s.sandboxId)).toEqual(['s3', 's2']);
    expect(await store.list(`${arn}-other`, 2)).toEqual([]);
  });
}

describe('session store in memory', () => sessionStoreContract(async () => new MemorySessionStore()));

describeDatabases('session store', sessionMigrations, (database) => {
  sessionStoreContract(async () => {
    await database().exec('DELETE FROM sessions');
    return createSqlSessionStore(database());
  });

  it('never has two live sandboxes for one id', async () => {
    const store = createSqlSessionStore(database());
    await store.begin(row('first', 'same-id'));
    await expect(store.begin(row('second', 'same-id'))).rejects.toThrow();
    await store.end('first', 'idle', 1);
    await store.begin(row('second', 'same-id'));
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
  });
});
