import type { Executor } from './database.ts';
import type { RetentionRule } from './retention.ts';

/** Something in the database is other than it was. What it is now has to be read there. */
export interface Change {
  /** The kind of a resource (`agent-runtime`), or the name of the table. */
  topic: string;
  /** Of a resource its ARN. */
  key: string;
}

/** What has become visible since an earlier look. */
export interface ChangesRead {
  /** Where the next look begins. */
  cursor: string;
  /** Rows that were never seen have been forgotten, or the database is an older one than before: anything may have changed. */
  behind: boolean;
  changes: Change[];
}

/** What servers listen to; a notification says no more than that there is something to read. */
export const CHANGES_CHANNEL = 'agentplatform_changes';

/** SQLSTATE of the message by which a statement tells its own connection that it noted a change; one of PostgreSQL's own never begins so. */
export const CHANGE_NOTED = 'APCHG';

/**
 * Statements that have every change of a row of `table` noted, whoever makes it. `key` names the column that says which row it is; `topic`
 * the column that says what kind of thing, where the table holds several.
 */
export function noteChanges(table: string, key: string, topic?: string): string {
  const columns = [key, ...(topic === undefined ? [] : [topic])].map((name) => `'${name}'`).join(', ');
  return `CREATE TRIGGER note_changes AFTER INSERT OR UPDATE OR DELETE ON ${table}
    FOR EACH ROW EXECUTE FUNCTION note_change(${columns});`;
}

/**
 * The table of changes and what writes it. A row carries the number of its transaction: numbers are given out in another order than
 * transactions commit in, so a reader asks for what its last snapshot did not see and this one does, never for what is greater than a number.
 */
export const changesTable = `
  CREATE TABLE changes (
    xid xid8 NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    topic text NOT NULL,
    key text NOT NULL,
    noted_at timestamptz NOT NULL,
    PRIMARY KEY (xid, id)
  );
  CREATE INDEX changes_noted_at ON changes (noted_at);
  -- The last transaction whose rows have been forgotten.
  CREATE TABLE changes_forgotten (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    xid xid8 NOT NULL
  );
  INSERT INTO changes_forgotten (xid) VALUES ('0');
  CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    changed jsonb := to_jsonb(CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END);
  BEGIN
    INSERT INTO changes (xid, topic, key, noted_at)
    VALUES (pg_current_xact_id(), coalesce(changed ->> TG_ARGV[1], TG_TABLE_NAME), changed ->> TG_ARGV[0], clock_timestamp());
    PERFORM pg_notify('${CHANGES_CHANNEL}', '');
    -- INFO reaches the client whatever it has asked for, and no log.
    RAISE INFO USING MESSAGE = 'a change is noted', ERRCODE = '${CHANGE_NOTED}';
    RETURN NULL;
  END $$;
  ${noteChanges('resources', 'arn', 'kind')}`;

/** The cursor of somebody who has seen all that is there now. */
export async function currentCursor(database: Pick<Executor, 'query'>): Promise<string> {
  const [row] = await database.query<{ cursor: string }>('SELECT pg_current_snapshot()::text AS cursor');
  if (!row) throw new Error('the database gave no snapshot');
  return row.cursor;
}

/** What a snapshot of now sees and that of `cursor` did not, each thing once. */
export async function readChanges(database: Pick<Executor, 'query'>, cursor: string): Promise<ChangesRead> {
  const rows = await database.query<{ cursor: string; behind: boolean; topic: string | null; key: string }>(
    `SELECT DISTINCT pg_current_snapshot()::text AS cursor, c.topic, c.key,
       f.xid >= pg_snapshot_xmin($1::pg_snapshot)
         OR pg_snapshot_xmax(pg_current_snapshot()) < pg_snapshot_xmax($1::pg_snapshot) AS behind
     FROM changes_forgotten f LEFT JOIN changes c
       ON c.xid >= pg_snapshot_xmin($1::pg_snapshot) AND NOT pg_visible_in_snapshot(c.xid, $1::pg_snapshot)`,
    [cursor],
  );
  const [first] = rows;
  if (!first) throw new Error('the table changes_forgotten has lost its row');
  const changes = rows.flatMap(({ topic, key }) => (topic === null ? [] : [{ topic, key }]));
  return { cursor: first.cursor, behind: first.behind, changes };
}

/**
 * Forgets rows of transactions that every snapshot of now sees, and keeps the number of the last: whoever has not looked since it was under
 * way reads everything anew.
 */
export function forgetChanges(database: Executor): RetentionRule['forget'] {
  return async (before, limit) => {
    const [row] = await database.query<{ count: number }>(
      `WITH gone AS (
         DELETE FROM changes WHERE (xid, id) IN (
           SELECT xid, id FROM changes
           WHERE noted_at < $1 AND xid < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY xid, id LIMIT $2)
         RETURNING xid)
       UPDATE changes_forgotten SET xid = greatest(xid, (SELECT g.xid FROM gone g ORDER BY g.xid DESC LIMIT 1))
       WHERE EXISTS (SELECT FROM gone) RETURNING (SELECT count(*)::int FROM gone) AS count`,
      [new Date(before), limit],
    );
    return row?.count ?? 0;
  };
}
