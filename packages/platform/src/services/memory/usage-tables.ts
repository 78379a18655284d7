import type { Migration } from '../../kernel/storage/index.ts';

/**
 * What a row counts for in bytes, with its share of indexes: by nothing that changes while the row lives, but for `memory_records`.
 * Columns are those of the transition table `changed`.
 */
const BYTES = {
  memory_events: 'octet_length(payload) + octet_length(metadata::text) + 512',
  memory_sessions: 'octet_length(actor_id) + octet_length(session_id) + 256',
  memory_branches: 'octet_length(actor_id) + octet_length(session_id) + octet_length(name) + 256',
  // Its words and its vector beside it.
  memory_records: '2 * octet_length(content) + octet_length(metadata::text) + 2048',
  memory_extraction_jobs: 'coalesce(octet_length(inline), 0) + 512',
};

/** Counts with the rows themselves, in their transaction, whoever writes or deletes them. In order of ids, so that two never wait for each other. */
const counted = ([table, bytes]: [string, string]): string => `
  CREATE FUNCTION ${table}_added() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO memory_usage AS u (memory_id, bytes)
      SELECT memory_id, sum(${bytes}) FROM changed GROUP BY memory_id ORDER BY memory_id
      ON CONFLICT (memory_id) DO UPDATE SET bytes = u.bytes + excluded.bytes;
    RETURN NULL;
  END $$;
  CREATE FUNCTION ${table}_removed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO memory_usage AS u (memory_id, bytes)
      SELECT memory_id, -sum(${bytes}) FROM changed GROUP BY memory_id ORDER BY memory_id
      ON CONFLICT (memory_id) DO UPDATE SET bytes = u.bytes + excluded.bytes;
    RETURN NULL;
  END $$;
  CREATE TRIGGER ${table}_added AFTER INSERT ON ${table} REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ${table}_added();
  CREATE TRIGGER ${table}_removed AFTER DELETE ON ${table} REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION ${table}_removed();
  INSERT INTO memory_usage AS u (memory_id, bytes) SELECT memory_id, sum(${bytes}) FROM ${table} GROUP BY memory_id
    ON CONFLICT (memory_id) DO UPDATE SET bytes = u.bytes + excluded.bytes;`;

const recordBytes = (row: string): string =>
  `2 * octet_length(${row}.content) + octet_length(${row}.metadata::text) + 2048`;

/** What each memory takes up, for its quota. */
export const memoryUsageMigration: Migration = {
  id: 'memory/0007-usage',
  sql: `
  CREATE TABLE memory_usage (memory_id text PRIMARY KEY, bytes bigint NOT NULL);
  ${Object.entries(BYTES).map(counted).join('')}
  CREATE FUNCTION memory_records_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE memory_usage SET bytes = bytes + ${recordBytes('NEW')} - (${recordBytes('OLD')}) WHERE memory_id = NEW.memory_id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER memory_records_changed AFTER UPDATE ON memory_records FOR EACH ROW
    WHEN (OLD.content IS DISTINCT FROM NEW.content OR OLD.metadata IS DISTINCT FROM NEW.metadata)
    EXECUTE FUNCTION memory_records_changed();`,
};

/** Records that are made are billed, whoever makes them, in the transaction that makes them. */
export const memoryMeteredMigration: Migration = {
  id: 'memory/0011-metered',
  sql: `
  CREATE FUNCTION memory_records_metered() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO metered AS m (day, account_id, piece, resource_arn, session_id, user_id, unit, quantity)
      SELECT (now() AT TIME ZONE 'UTC')::date, r.account_id, 'memory', r.arn, '', '', 'memory-records', count(*)
      FROM changed JOIN resources r ON r.id = changed.memory_id AND r.kind = 'memory' GROUP BY r.account_id, r.arn ORDER BY 2, 4
      ON CONFLICT (account_id, day, resource_arn, session_id, user_id, piece, unit) DO UPDATE SET quantity = m.quantity + excluded.quantity;
    RETURN NULL;
  END $$;
  CREATE TRIGGER memory_records_metered AFTER INSERT ON memory_records REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION memory_records_metered();`,
};
