import { expect, it } from 'vitest';
import { systemClock } from '../../kernel/clock.ts';
import type { Embedder } from '../../kernel/embeddings/index.ts';
import { jobMigrations } from '../../kernel/jobs/index.ts';
import { meteringMigrations } from '../../kernel/metering/index.ts';
import { ModelError } from '../../kernel/models/index.ts';
import { VectorIndex } from '../../kernel/search/index.ts';
import { storageMigrations } from '../../kernel/storage/index.ts';
import { describeDatabases, silent } from '../../kernel/storage/testing/databases.ts';
import { insertRecord, type RecordFilter, updateRecord } from './record-store.ts';
import { recordTable } from './record-table.ts';
import { memoryMigrations } from './tables.ts';

/** A vector from a text that is a number: points on a curve, near when the numbers are near. */
function embedder(model: string): Embedder & { asked: string[] } {
  const asked: string[] = [];
  const vector = (text: string): Float32Array => {
    const t = Number(text) / 300;
    return Float32Array.from(
      [Math.cos(t), Math.sin(t), Math.cos(2 * t), Math.sin(2 * t)],
      (value) => value / Math.SQRT2,
    );
  };
  const embed = async (texts: readonly string[]) => {
    asked.push(...texts);
    return texts.map(vector);
  };
  return { model, dimensions: 4, asked, embed, close: async () => undefined };
}

const filterOf = (key: string): RecordFilter => {
  return {
    memoryId: 'm',
    now: new Date(),
    scope: { kind: 'path', key },
    strategyId: undefined,
    metadata: [],
    metadataField: '',
  };
};

describeDatabases(
  'vector index',
  [...storageMigrations, ...jobMigrations, ...meteringMigrations, ...memoryMigrations],
  (database) => {
    const until = (done: () => boolean) => expect.poll(done, { timeout: 240_000 }).toBe(true);

    it('finds the nearest in a namespace, one by one and through the graph alike', async () => {
      const at = new Date();
      for (let n = 0; n < 600; n++) {
        const place = { memoryId: 'm', strategyId: 's', namespace: n % 50 === 0 ? '/rare' : `/often/${n % 2}` };
        await insertRecord(database(), {
          ...place,
          id: `r${n}`,
          content: String(n),
          metadata: {},
          at,
          insertedAt: at,
          eventIds: [],
        });
      }
      const model = embedder('one');
      const common = { database: database(), table: recordTable, clock: systemClock, log: silent };
      const exact = new VectorIndex({ ...common, embedder: model });
      const graph = new VectorIndex({ ...common, embedder: model, exactAtMost: 5 });
      await exact.start();
      await until(() => model.asked.length >= 600);
      await expect
        .poll(() => database().query('SELECT 1 FROM memory_records WHERE needs_vector'), { timeout: 240_000 })
        .toEqual([]);
      const planned = () =>
        database().query("SELECT 1 FROM pg_class WHERE relname = 'memory_records' AND reltuples = 600");
      // PostgreSQL gathers statistics when it likes.
      if (database().kind === 'pglite') await expect.poll(planned, { timeout: 240_000 }).toHaveLength(1);
      for (const key of ['/rare', '/often', '/often/1', '']) {
        const vector = await exact.embed('301');
        const wanted = (await exact.search(filterOf(key), vector, 10)).map(({ id }) => id);
        const found = (await graph.search(filterOf(key), vector, 10)).map(({ id }) => id);
        expect(wanted).toHaveLength(10);
        expect(wanted[0]).toBe({ '/rare': 'r300', '/often': 'r301', '/often/1': 'r301', '': 'r301' }[key]);
        expect(found.filter((id) => wanted.includes(id)).length).toBeGreaterThanOrEqual(9);
      }
      expect(await exact.search({ ...filterOf(''), memoryId: 'other' }, await exact.embed('1'), 10)).toEqual([]);
      expect(await exact.search({ ...filterOf(''), strategyId: 'other' }, await exact.embed('1'), 10)).toEqual([]);

      const asked = model.asked.length;
      await updateRecord(database(), 'm', 'r301', { namespace: '/rare/new', at }, at);
      const moved = async (index: VectorIndex<RecordFilter>, key: string) =>
        (await index.search(filterOf(key), await index.embed('301'), 1)).map(({ id }) => id);
      expect(await moved(exact, '/often')).not.toEqual(['r301']);
      exact.wake(0);
      await until(() => model.asked.length > asked + 1);
      await expect.poll(() => moved(exact, '/rare/new'), { timeout: 240_000 }).toEqual(['r301']);
      expect(await moved(graph, '/rare')).toEqual(['r301']);
      expect(await moved(graph, '/often')).not.toEqual(['r301']);
      await exact.stop();

      const other = embedder('two');
      const anew = new VectorIndex({ ...common, embedder: other });
      await anew.start();
      await until(() => other.asked.length >= 600);
      await expect
        .poll(() => database().query('SELECT model FROM memory_vector_models'), { timeout: 240_000 })
        .toEqual([{ model: 'two' }]);
      await anew.stop();
    }, 600_000);

    it('makes the vectors of all texts but those that the model refuses, and none while it refuses everything', async () => {
      await database().exec('DELETE FROM memory_records');
      const at = new Date();
      const common = {
        metadata: {},
        at,
        insertedAt: at,
        eventIds: [],
        memoryId: 'm',
        strategyId: 's',
        namespace: '/x',
      };
      for (let n = 0; n < 40; n++)
        await insertRecord(database(), { ...common, id: `n${n}`, content: n % 10 === 3 ? `${n} too long` : String(n) });
      const model = embedder('picky');
      let refusing = true;
      const picky: Embedder = {
        ...model,
        embed: async (texts, signal) => {
          if (refusing || texts.some((text) => text.includes('long')))
            throw new ModelError('the service of the model answered 400', { kind: 'refused' });
          return model.embed(texts, signal);
        },
      };
      const index = new VectorIndex({
        database: database(),
        table: recordTable,
        clock: systemClock,
        log: silent,
        embedder: picky,
      });
      const waiting = async () =>
        (await database().query<{ id: string }>('SELECT id FROM memory_records WHERE needs_vector')).length;
      await index.start();
      await index.stop();
      expect(await waiting()).toBe(40);

      refusing = false;
      const again = new VectorIndex({
        database: database(),
        table: recordTable,
        clock: systemClock,
        log: silent,
        embedder: picky,
      });
      await again.start();
      await expect.poll(waiting, { timeout: 240_000 }).toBe(0);
      const found = await again.search(filterOf(''), await again.embed('1'), 50);
      expect(found.map(({ id }) => id).toSorted()).toEqual(
        Array.from({ length: 40 }, (_, n) => `n${n}`)
          .filter((id) => !/3$/.test(id))
          .toSorted(),
      );
      await again.stop();
    }, 120_000);

    it('is not begun with vectors that no index takes', async () => {
      const long = { ...embedder('long'), dimensions: 2001 };
      const index = new VectorIndex({
        database: database(),
        table: recordTable,
        clock: systemClock,
        log: silent,
        embedder: long,
      });
      await expect(index.start()).rejects.toThrow('too long');
    });
  },
);
