import { expect, test } from 'vitest';
import type { Migration } from './migrations.ts';
import { describeDatabases } from './testing/databases.ts';
import { vacuum } from './vacuum.ts';

const migrations: Migration[] = [
  { id: 'test/0001', sql: 'CREATE TABLE trail (id integer, text text); CREATE TABLE "Still" (id integer)' },
];

describeDatabases('clearing away', migrations, (database) => {
  const fill = () =>
    database().execute(`INSERT INTO trail SELECT i, repeat('x', 200) FROM generate_series(1, 20000) AS i`);
  const size = async () => {
    const [row] = await database().query<{ size: number }>(`SELECT pg_relation_size('trail') AS size`);
    return row?.size ?? 0;
  };

  test('makes room of what was deleted, which is taken again instead of more of the disk', async () => {
    if (database().kind === 'postgres') await database().exec('ALTER TABLE trail SET (autovacuum_enabled = false)');
    await fill();
    const before = await size();
    // The control: without it the file grows.
    await database().execute('DELETE FROM trail');
    await fill();
    expect(await size()).toBeGreaterThan(before * 1.9);
    await database().execute('DELETE FROM trail');
    // Another connection may have counted the rows, and tells after a while.
    await expect.poll(() => vacuum(database()), { timeout: 60_000 }).toEqual(['public.trail']);
    await fill();
    await fill();
    expect(await size()).toBeLessThan(before * 2.1);
  });
});
