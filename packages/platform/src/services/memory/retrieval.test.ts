import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../kernel/clock.ts';
import { jobMigrations } from '../../kernel/jobs/index.ts';
import { meteringMigrations } from '../../kernel/metering/index.ts';
import type { Reranker } from '../../kernel/models/index.ts';
import { migrate, storageMigrations } from '../../kernel/storage/index.ts';
import { silent, type TemporaryDatabase, temporaryPglite } from '../../kernel/storage/testing/databases.ts';
import { insertRecord } from './record-store.ts';
import { Retrieval } from './retrieval.ts';
import { memoryMigrations } from './tables.ts';

const TEXTS = ['tea', 'tea and cake', 'tea and cake and jam', 'coffee'];
let temporary: TemporaryDatabase;

beforeAll(async () => {
  temporary = await temporaryPglite();
  await migrate(
    temporary.database,
    [...storageMigrations, ...jobMigrations, ...meteringMigrations, ...memoryMigrations],
    silent,
  );
  const at = new Date();
  for (const [index, content] of TEXTS.entries()) {
    const place = { memoryId: 'm', strategyId: 's', namespace: '/n' };
    await insertRecord(temporary.database, {
      ...place,
      id: `r${index}`,
      content,
      metadata: {},
      at,
      insertedAt: at,
      eventIds: [],
    });
  }
});
afterAll(() => temporary?.dispose());

async function searched(reranker: Reranker | undefined, topK = 10) {
  const retrieval = new Retrieval({
    database: temporary.database,
    clock: systemClock,
    log: silent,
    ...(reranker ? { reranker } : {}),
  });
  const searchCriteria = { searchQuery: 'tea', topK };
  const found = await retrieval.search('m', { memoryId: 'm', namespace: '/n', searchCriteria });
  return found.map(({ record, score }) => [record.content, Number(score.toFixed(3))]);
}

/** Prefers the longest, in numbers of its own. */
const longest = (scale: (length: number) => number): Reranker & { asked: string[][] } => {
  const asked: string[][] = [];
  return {
    asked,
    score: async (_query, texts) => {
      asked.push([...texts]);
      return texts.map(({ length }) => scale(length));
    },
  };
};

describe('a rerank model', () => {
  it('has the last word on the order and gives the score', async () => {
    expect((await searched(undefined)).map(([text]) => text)).toEqual(TEXTS.slice(0, 3));
    const model = longest((length) => length / 100);
    expect(await searched(model)).toEqual([
      ['tea and cake and jam', 0.2],
      ['tea and cake', 0.12],
      ['tea', 0.03],
    ]);
    expect(model.asked[0]?.toSorted()).toEqual(TEXTS.slice(0, 3).toSorted());
  });

  it('judges more than are given back, and logits become shares', async () => {
    const found = await searched(
      longest((length) => length - 12),
      1,
    );
    expect(found).toEqual([['tea and cake and jam', 1]]);
  });

  it('that fails leaves the order as it was', async () => {
    const broken = { score: () => Promise.reject(new Error('down')) };
    expect(await searched(broken)).toEqual(await searched(undefined));
  });
});
