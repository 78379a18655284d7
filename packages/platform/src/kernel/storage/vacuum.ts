import type { Executor } from './database.ts';

/** Of PostgreSQL's own rule (autovacuum_vacuum_threshold and _scale_factor). */
const DEAD_ROWS = 1_000;
const DEAD_SHARE = 0.2;

/**
 * Makes the room of deleted and replaced rows free for new ones, table by table, where there are enough of them to be worth it. PostgreSQL does
 * so by itself in a process of its own, which the embedded database does not have: without this its files only grow. Other
 * statements wait for one table at a time. Resolves with the tables' names.
 */
export async function vacuum(database: Executor): Promise<string[]> {
  const tables = await database.query<{ name: string }>(
    `SELECT quote_ident(schemaname) || '.' || quote_ident(relname) AS name FROM pg_stat_user_tables
     WHERE n_dead_tup > $1::integer + $2::float8 * n_live_tup ORDER BY relname`,
    [DEAD_ROWS, DEAD_SHARE],
  );
  for (const { name } of tables) await database.exec(`VACUUM ${name}`);
  return tables.map(({ name }) => name);
}
