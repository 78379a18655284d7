import { expect, it } from 'vitest';
import { jobMigrations } from '../../kernel/jobs/index.ts';
import { meteringMigrations } from '../../kernel/metering/index.ts';
import { lexicalSearch } from '../../kernel/search/index.ts';
import { storageMigrations } from '../../kernel/storage/index.ts';
import { describeDatabases } from '../../kernel/storage/testing/databases.ts';
import { insertRecord, type RecordFilter, updateRecord } from './record-store.ts';
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

describeDatabases(
  'lexical search',
  [...storageMigrations, ...jobMigrations, ...meteringMigrations, ...memoryMigrations],
  (database) => {
    it('finds inflections in the language of each record, whichever language is asked in', async () => {
      const texts = {
        de: 'Ich habe Allergien gegen Nüsse und die Häuser sind alt',
        es: 'Soy alérgica a las nueces y tengo dos perros en casa',
        ru: 'У меня есть две собаки',
        fr: 'Je suis allergique aux noix et nous avons deux chevaux',
        en: 'She has allergies and two dogs',
      };
      for (const [name, content] of Object.entries(texts)) {
        const at = new Date();
        const what = { memoryId: 'languages', strategyId: 's', namespace: '/a', content, metadata: {} };
        await insertRecord(database(), { ...what, id: `mem-${name}`, at, insertedAt: at, eventIds: [] });
      }
      const ids = async (query: string) =>
        (await lexicalSearch(database(), recordTable, { ...filter, memoryId: 'languages' }, query, 10))
          .map(({ id }) => id)
          .sort();
      for (const form of ['Allergie', 'Allergien']) expect(await ids(form)).toContain('mem-de');
      for (const form of ['alérgico', 'alérgicas']) expect(await ids(form)).toEqual(['mem-es']);
      for (const form of ['собака', 'собаку']) expect(await ids(form)).toEqual(['mem-ru']);
      expect(await ids('allergiques')).toContain('mem-fr');
      expect(await ids('dog')).toEqual(['mem-en']);
      // What is a stop word of the record's language does not lower its score.
      const scored = await lexicalSearch(
        database(),
        recordTable,
        { ...filter, memoryId: 'languages' },
        'die Allergie',
        10,
      );
      expect(scored.find(({ id }) => id === 'mem-de')?.score).toBe(1);
      expect(
        await updateRecord(database(), 'languages', 'mem-en', { content: texts.ru, at: new Date() }, new Date()),
      ).toBe(true);
      expect(await ids('собаку')).toEqual(['mem-en', 'mem-ru']);
    });

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
  },
);
