import { expect, it } from 'vitest';
import { jobMigrations } from '../../kernel/jobs/index.ts';
import { lexicalSearch } from '../../kernel/search/index.ts';
import { storageMigrations } from '../../kernel/storage/index.ts';
import { describeDatabases } from '../../kernel/storage/testing/databases.ts';
import { insertRecord, type RecordFilter } from './record-store.ts';
import { recordTable } from './record-table.ts';
import { memoryMigrations } from './tables.ts';

const filter: RecordFilter = {
  memoryId: 'm',
  now: new Date(),
  scope: { kind: 'exact', key: '/a' },
  strategyId: undefined,
  metadata: [],
  metadataField: '',
};

describeDatabases('lexical search', [...storageMigrations, ...jobMigrations, ...memoryMigrations], (database) => {
  it('ranks by the weight of the words that a record holds', async () => {
    const texts = [
      'The violin is old',
      'She has a red car',
      'He has a car',
      'A car and a violin',
      "quote ' and \\ and | here",
      'She is allergic to hazelnuts',
      'No allergies, she says',
    ];
    for (const [index, content] of texts.entries()) {
      const at = new Date();
      const record = {
        memoryId: 'm',
        strategyId: 's',
        namespace: '/a/',
        content,
        metadata: {},
        at,
        insertedAt: at,
        eventIds: [],
      };
      await insertRecord(database(), { ...record, id: `mem-${index}` });
      await insertRecord(database(), { ...record, id: `mem-other-${index}`, memoryId: 'other' });
    }
    const ids = async (query: string) =>
      (await lexicalSearch(database(), recordTable, filter, query, 10)).map(({ id }) => id);
    expect(await ids('Who has the violin and a car?')).toEqual(['mem-3', 'mem-0', 'mem-2', 'mem-1']);
    expect(await ids('the and of')).toEqual([]);
    expect(await ids('violins')).toEqual(['mem-0', 'mem-3']);
    expect(await ids("quote ' & | ! \\ :* \u0000 (")).toEqual(['mem-4']);
    for (const form of ['allergy', 'allergies', 'allergic', 'Allergy?'])
      expect(await ids(form)).toEqual(['mem-6', 'mem-5']);
    expect((await lexicalSearch(database(), recordTable, filter, 'allergic', 10))[0]?.score).toBe(1);
    expect((await lexicalSearch(database(), recordTable, filter, 'red', 10))[0]?.score).toBe(1);
  });
});
