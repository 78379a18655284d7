import { expect, it } from 'vitest';
import { jobMigrations } from '../../kernel/jobs/index.ts';
import { meteringMigrations } from '../../kernel/metering/index.ts';
import { storageMigrations } from '../../kernel/storage/index.ts';
import { describeDatabases } from '../../kernel/storage/testing/databases.ts';
import { insertRecord, insertRecords, listRecords } from './record-store.ts';
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

describeDatabases(
  'records of a place',
  [...storageMigrations, ...jobMigrations, ...meteringMigrations, ...memoryMigrations],
  (database) => {
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

    it('are written by one statement, however many come at once', async () => {
      const at = new Date();
      const statements: string[] = [];
      const executor = {
        ...{ query: database().query.bind(database()), exec: database().exec.bind(database()) },
        execute: (sql: string, params?: unknown[]) => {
          statements.push(sql);
          return database().execute(sql, params);
        },
      };
      const texts = [
        'a "quote" and \\ and ,',
        'half of \ud800 a character',
        ...Array.from({ length: 98 }, (_, n) => `text ${n}`),
      ];
      const records = texts.map((content, n) => ({
        ...{ id: `one-${n}`, memoryId: 'one', strategyId: 's', namespace: '/a', content, at, insertedAt: at },
        ...{ metadata: { color: { stringValue: 'red' } }, eventIds: ['1#a'], expiry: { days: 40, at: new Date(9e12) } },
      }));
      await insertRecords(executor, records);
      expect(statements).toHaveLength(1);
      const filter = { memoryId: 'one', now: at, strategyId: undefined, metadata: [], metadataField: '' };
      const found = await listRecords(database(), { ...filter, scope: { kind: 'all' } }, 1000, undefined);
      expect(found).toHaveLength(100);
      const kept = records.map(({ insertedAt: _at, content, ...one }) => ({ ...one, content: content.toWellFormed() }));
      expect(found.toSorted((a, b) => texts.indexOf(a.content) - texts.indexOf(b.content))).toEqual(
        expect.arrayContaining(kept.map((one) => expect.objectContaining(one))),
      );
    });
  },
);
