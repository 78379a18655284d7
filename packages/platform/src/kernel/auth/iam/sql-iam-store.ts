import { type Database, type Executor, type Migration, noteChanges } from '../../storage/index.ts';
import { parseRecord } from './iam-records.ts';
import { IAM_TOPIC, type IamStore, StaleRevisionError } from './iam-store.ts';

export const iamMigrations: Migration[] = [
  {
    id: 'iam/0001-records',
    sql: `
      CREATE TABLE iam_records (
        kind text NOT NULL,
        name text NOT NULL,
        data jsonb NOT NULL,
        PRIMARY KEY (kind, name)
      );
      CREATE TABLE iam_revision (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        revision bigint NOT NULL
      );
      INSERT INTO iam_revision (revision) VALUES (0);
    `,
  },
  {
    // One row for each commit, regardless of its content.
    id: 'iam/0002-changes',
    sql: noteChanges(IAM_TOPIC, 'one'),
  },
];

/** The access management in the platform's database; its secrets are sealed before they come here. */
export function createSqlIamStore(database: Database): IamStore {
  const revisionOf = async (executor: Executor): Promise<number> => {
    const [row] = await executor.query<{ revision: number }>('SELECT revision FROM iam_revision');
    return row?.revision ?? 0;
  };
  return {
    // The revision is read first: records newer than it only make the next commit start again.
    async load() {
      const revision = await revisionOf(database);
      const rows = await database.query<{ kind: string; name: string; data: unknown }>(
        'SELECT kind, name, data FROM iam_records ORDER BY kind, name',
      );
      return { revision, records: rows.map((row) => parseRecord(row.kind, row.name, row.data)) };
    },
    revision: () => revisionOf(database),
    commit: (revision, changes) =>
      database.transaction(async (tx) => {
        const taken = await tx.execute('UPDATE iam_revision SET revision = revision + 1 WHERE revision = $1', [
          revision,
        ]);
        if (taken !== 1) throw new StaleRevisionError();
        for (const change of changes) {
          if ('put' in change) {
            const { kind, name, data } = change.put;
            await tx.execute(
              `INSERT INTO iam_records (kind, name, data) VALUES ($1, $2, $3::jsonb)
               ON CONFLICT (kind, name) DO UPDATE SET data = excluded.data`,
              [kind, name, JSON.stringify(data)],
            );
          } else {
            const { kind, name } = change.remove;
            await tx.execute('DELETE FROM iam_records WHERE kind = $1 AND name = $2', [kind, name]);
          }
        }
        return revision + 1;
      }),
  };
}
