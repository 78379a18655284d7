import type { Database } from './database.ts';

/** As autovacuum of PostgreSQL has it. */
const CHANGED_SHARE = 0.1;
const CHANGED_AT_LEAST = 200;
/** Bytes of a table that was never looked at, from which on it is worth it. */
const WORTH_IT = 65_536;

/**
 * Gathers what the planner knows of the tables whose names begin with one of these when they have changed by a tenth. PostgreSQL does so by
 * itself; the embedded database has no process for it, takes each table for nearly empty, and a search of 10,000 records six times as long.
 */
export async function keepStatistics(database: Database, beginnings: readonly string[]): Promise<void> {
  if (database.kind !== 'pglite') return;
  // Counts of changes are written down now and then only; the next statement sees them.
  await database.query('SELECT pg_stat_force_next_flush()');
  const tables = await database.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class c JOIN pg_stat_user_tables s ON s.relid = c.oid
     WHERE EXISTS (SELECT FROM jsonb_array_elements_text($1::jsonb) b(name) WHERE starts_with(c.relname, b.name)) AND (
       s.n_mod_since_analyze > ${CHANGED_AT_LEAST} + ${CHANGED_SHARE} * greatest(c.reltuples, 0)
       OR c.reltuples < 0 AND pg_relation_size(c.oid) > ${WORTH_IT})`,
    [JSON.stringify(beginnings)],
  );
  for (const { name } of tables) await database.exec(`ANALYZE ${name}`);
}
