import { expect, it } from 'vitest';
import { jobMigrations } from '../../kernel/jobs/index.ts';
import { storageMigrations } from '../../kernel/storage/index.ts';
import { describeDatabases } from '../../kernel/storage/testing/databases.ts';
import { insertRecord, listRecords } from './record-store.ts';
import { memoryMigrations } from './tables.ts';

const PLACES = [
  '/a',
  '/a/',
  '/a/b',
  '/a/b/c',
  '/a/-',
  '/a//',
  '/a-',
  '/a-/b',
  '/a:b',
  '/a0',
  '/a*',
  '/ab',
  '/A',
  '/',
  '',
];

describeDatabases('records of a place', [...storageMigrations, ...jobMigrations, ...memoryMigrations], (database) => {
  it('are those of the namespace itself and of all below it, never of a sibling that begins alike', async () => {
    const at = new Date();
    for (const [index, namespace] of PLACES.entries()) {
      const record = {
        id: `r${String(index).padStart(2, '0')}`,
        memoryId: 'm',
        strategyId: 's',
        namespace,
        content: 'x',
      };
      await insertRecord(database(), { ...record, metadata: {}, at, insertedAt: at, eventIds: [] });
    }
    const found = async (scope: { kind: 'exact' | 'path'; key: string }) => {
      const filter = { memoryId: 'm', now: at, scope, strategyId: undefined, metadata: [], metadataField: '' };
      return (await listRecords(database(), filter, 100, undefined)).map(({ namespace }) => namespace);
    };
    expect(await found({ kind: 'path', key: '/a' })).toEqual(['/a', '/a/', '/a/b', '/a/b/c', '/a/-', '/a//']);
    expect(await found({ kind: 'path', key: '/a/b' })).toEqual(['/a/b', '/a/b/c']);
    expect(await found({ kind: 'path', key: '/a-' })).toEqual(['/a-', '/a-/b']);
    expect(await found({ kind: 'path', key: '' })).toEqual(PLACES);
    expect(await found({ kind: 'exact', key: '/a' })).toEqual(['/a', '/a/', '/a//']);
    expect(await found({ kind: 'exact', key: '' })).toEqual(['/', '']);
  });
});
