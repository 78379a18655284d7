import { describe, expect, it } from 'vitest';
import { storageMigrations } from '../../storage/index.ts';
import { describeDatabases } from '../../storage/testing/databases.ts';
import { IamDirectory } from './iam-directory.ts';
import type { IamRecord, User } from './iam-records.ts';
import { createMemoryIamStore, type IamStore, StaleRevisionError } from './iam-store.ts';
import { createSqlIamStore, iamMigrations } from './sql-iam-store.ts';

const user = (userName: string, tag = ''): IamRecord & { data: User } => ({
  kind: 'user',
  name: userName,
  data: {
    userName,
    userId: 'AIDA',
    arn: `arn:${userName}`,
    createdAt: 1,
    tags: { tag },
    policies: { 'a"b': '{"é":1}' },
  },
});

function contract(open: () => IamStore): void {
  it('keeps records, and all changes of a commit or none', async () => {
    const store = open();
    const { revision } = await store.load();
    const next = await store.commit(revision, [{ put: user('ann') }, { put: user('bob') }]);
    expect(next).toBeGreaterThan(revision);
    expect(await store.revision()).toBe(next);
    await expect(store.commit(revision, [{ put: user('eve') }])).rejects.toBeInstanceOf(StaleRevisionError);
    const last = await store.commit(next, [{ put: user('ann', 'new') }, { remove: { kind: 'user', name: 'bob' } }]);
    expect(await store.load()).toEqual({ revision: last, records: [user('ann', 'new')] });
    await store.commit(last, [{ remove: { kind: 'user', name: 'ann' } }]);
  });

  it('two servers on it lose no change of each other', async () => {
    const store = open();
    const servers = [await IamDirectory.open(store), await IamDirectory.open(store)];
    const add = (server: IamDirectory, name: string) =>
      server.update((state) => ({ changes: [{ put: user(name) }], result: state.users.size }));
    await Promise.all(servers.flatMap((server, s) => [0, 1, 2].map((i) => add(server, `u${s}${i}`))));
    for (const server of servers) {
      await server.refresh();
      expect([...server.state.users.keys()].sort()).toEqual(['u00', 'u01', 'u02', 'u10', 'u11', 'u12']);
    }
  });

  it('a commit that was taken over from the store meanwhile, with a later one, undoes nothing of that', async () => {
    const store = open();
    const other = await IamDirectory.open(store);
    const add = (server: IamDirectory, name: string) =>
      server.update(() => ({ changes: [{ put: user(name) }], result: undefined }));
    const slow: IamStore = {
      ...store,
      async commit(revision, changes) {
        const next = await store.commit(revision, changes);
        await other.refresh();
        await add(other, 'later');
        await directory.refresh();
        return next;
      },
    };
    const directory = await IamDirectory.open(slow);
    await add(directory, 'early');
    expect([...directory.state.users.keys()]).toEqual(expect.arrayContaining(['early', 'later']));
    expect(directory.state.revision).toBe(await store.revision());
  });
}

describe('the store of the access management in memory', () => {
  const store = createMemoryIamStore();
  contract(() => store);
});

describeDatabases('the store of the access management', [...storageMigrations, ...iamMigrations], (database) => {
  contract(() => createSqlIamStore(database()));
});
