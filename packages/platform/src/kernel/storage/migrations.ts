import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Database, Executor } from './database.ts';
import { MigrationError } from './errors.ts';

/** One step of the schema. It is never edited once released: a change is a new step. */
export interface Migration {
  /** `<service>/<number>-<what>`, e.g. `storage/0001-resources`; unique among all. */
  id: string;
  /** One or more statements, valid on PGlite and PostgreSQL alike. */
  sql: string;
}

/** Any number that no other user of this database's advisory locks takes. */
const LOCK = 4_100_001;

/**
 * Applies those of `migrations` that the database does not have yet, in the order given, all or none, while no other
 * server migrates. Returns the ids applied. Throws `MigrationError` for a duplicate id or an edited step.
 */
export async function migrate(
  database: Pick<Database, 'transaction'>,
  migrations: readonly Migration[],
  log?: Logger,
): Promise<string[]> {
  refuseDuplicates(migrations);
  return database.transaction(async (tx) => {
    await tx.exec(`SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock(${LOCK})`);
    await tx.exec(
      'CREATE TABLE IF NOT EXISTS schema_migrations (id text PRIMARY KEY, hash text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())',
    );
    const known = await appliedMigrations(tx);
    const applied: string[] = [];
    for (const migration of migrations) {
      const hash = createHash('sha256').update(migration.sql).digest('hex');
      const before = known.get(migration.id);
      if (before === hash) continue;
      if (before)
        throw new MigrationError(`migration ${migration.id} was applied with another text: add a new one instead`);
      await tx.exec(migration.sql);
      await tx.query('INSERT INTO schema_migrations (id, hash) VALUES ($1, $2)', [migration.id, hash]);
      applied.push(migration.id);
    }
    const wanted = new Set(migrations.map((migration) => migration.id));
    const foreign = [...known.keys()].filter((id) => !wanted.has(id));
    if (foreign.length > 0) log?.warn({ foreign }, 'the database has migrations that this version does not know');
    return applied;
  });
}

async function appliedMigrations(tx: Executor): Promise<Map<string, string>> {
  const rows = await tx.query<{ id: string; hash: string }>('SELECT id, hash FROM schema_migrations');
  return new Map(rows.map((row) => [row.id, row.hash]));
}

function refuseDuplicates(migrations: readonly Migration[]): void {
  const seen = new Set<string>();
  for (const { id } of migrations) {
    if (seen.has(id)) throw new MigrationError(`two migrations are named ${id}`);
    seen.add(id);
  }
}
