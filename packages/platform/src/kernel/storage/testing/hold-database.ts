/** Run as a child: opens the embedded database, reports each acknowledged insert on stdout, and goes on until killed. */
import pino from 'pino';
import { openDatabase } from '../database.ts';

const [dataDir, cacheDir] = process.argv.slice(2);
if (!dataDir) throw new Error('usage: hold-database.ts DATA_DIR CACHE_DIR');
const database = await openDatabase({ dataDir, cacheDir, log: pino({ level: 'silent' }) });
await database.exec('CREATE TABLE IF NOT EXISTS kept (n int PRIMARY KEY)');
const [row] = await database.query<{ next: number }>('SELECT coalesce(max(n) + 1, 0)::int AS next FROM kept');
process.stdout.write('open\n');
for (let n = row?.next ?? 0; ; n++) {
  await database.transaction(async (tx) => {
    await tx.query('INSERT INTO kept VALUES ($1)', [n]);
  });
  process.stdout.write(`${n}\n`);
}
