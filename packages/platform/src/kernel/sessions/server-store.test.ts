import { beforeEach, describe, expect, it } from 'vitest';
import { meteringMigrations } from '../metering/index.ts';
import { describeDatabases } from '../storage/testing/databases.ts';
import type { ServerStore } from './server-store.ts';
import { createSqlServerStore } from './sql-server-store.ts';
import { sessionMigrations } from './tables.ts';
import { MemoryServerStore } from './testing/memory-server-store.ts';

const server = (serverId: string) => ({ serverId, leaseMs: 1000, address: `${serverId}:1` });

/** The rules of every store of servers. */
function serverStoreContract(open: () => Promise<ServerStore>): void {
  let store: ServerStore;
  beforeEach(async () => {
    store = await open();
  });

  it('shows a server to the others, with a beat that grows', async () => {
    const epoch = await store.claim(server('a'));
    const other = await store.claim(server('b'));
    await store.renew('a', epoch);
    expect((await store.renew('b', other))?.toSorted((x, y) => (x.serverId < y.serverId ? -1 : 1))).toEqual([
      { ...server('a'), epoch, beat: 1 },
      { ...server('b'), epoch: other, beat: 1 },
    ]);
  });

  it('tells where a server is reached once it knows', async () => {
    const epoch = await store.claim({ ...server('a'), address: undefined });
    await store.announce('a', epoch - 1, 'wrong:1');
    expect(await store.renew('a', epoch)).toMatchObject([{ address: undefined }]);
    await store.announce('a', epoch, 'right:1');
    expect(await store.renew('a', epoch)).toMatchObject([{ address: 'right:1' }]);
  });

  it('refuses an earlier life of the same server', async () => {
    const first = await store.claim(server('a'));
    const second = await store.claim(server('a'));
    expect(second).toBeGreaterThan(first);
    expect(await store.renew('a', first)).toBeUndefined();
    expect(await store.renew('a', second)).toHaveLength(1);
    await store.release('a', first, 1);
    expect(await store.renew('a', second)).toHaveLength(1);
    await store.release('a', second, 1);
    expect(await store.renew('a', second)).toBeUndefined();
  });

  it('deposes a server whose beat has not moved, and no other; its next life has another epoch', async () => {
    const epoch = await store.claim(server('a'));
    const seen = (await store.renew('a', epoch))?.[0];
    if (!seen) throw new Error('unreachable');
    await store.renew('a', epoch);
    expect(await store.depose(seen, 1)).toBeUndefined();
    expect(await store.depose({ ...seen, beat: 2 }, 1)).toBe(0);
    expect(await store.renew('a', epoch)).toBeUndefined();
    expect(await store.claim(server('a'))).toBeGreaterThan(epoch);
  });
}

describe('server store in memory', () => serverStoreContract(async () => new MemoryServerStore()));

describeDatabases('server store', [...meteringMigrations, ...sessionMigrations], (database) => {
  serverStoreContract(async () => {
    await database().exec('DELETE FROM servers');
    return createSqlServerStore(database());
  });
});
