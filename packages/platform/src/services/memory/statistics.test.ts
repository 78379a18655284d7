import { afterAll, beforeAll, expect, it } from 'vitest';
import { jobMigrations } from '../../kernel/jobs/index.ts';
import { meteringMigrations } from '../../kernel/metering/index.ts';
import { keepStatistics, migrate, storageMigrations } from '../../kernel/storage/index.ts';
import { silent, type TemporaryDatabase, temporaryPglite } from '../../kernel/storage/testing/databases.ts';
import { memoryMigrations } from './tables.ts';

let temporary: TemporaryDatabase;
beforeAll(async () => {
  temporary = await temporaryPglite();
  await migrate(
    temporary.database,
    [...storageMigrations, ...jobMigrations, ...meteringMigrations, ...memoryMigrations],
    silent,
  );
});
afterAll(() => temporary?.dispose());

it('the embedded database learns how many rows there are, and is not asked to look again before a tenth has changed', async () => {
  const { database } = temporary;
  const known = async () => {
    const [row] = await database.query<{ n: number }>(
      "SELECT reltuples::int AS n FROM pg_class WHERE relname = 'memory_records'",
    );
    return row?.n;
  };
  const add = (from: number, to: number) =>
    database.execute(
      `INSERT INTO memory_records (id, memory_id, strategy_id, namespace, namespace_key, content, content_hash, metadata, at, inserted_at, event_ids)
       SELECT 'r' || n, 'm', 's', '/n', '/n', 'tea ' || n, n::text, '{}', now(), now(), '[]' FROM generate_series($1::int, $2::int) n`,
      [from, to],
    );
  await add(1, 100);
  await keepStatistics(database, ['memory_']);
  expect(await known()).toBe(-1);
  await add(101, 1000);
  await keepStatistics(database, ['memory_']);
  expect(await known()).toBe(1000);
  await add(1001, 1150);
  await keepStatistics(database, ['memory_']);
  expect(await known()).toBe(1000);
  await add(1151, 1400);
  await keepStatistics(database, ['memory_']);
  expect(await known()).toBe(1400);
});
