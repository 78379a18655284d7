import type { Migration } from '../../kernel/storage/index.ts';

/** How a transaction says that it may remove rows of the trail; what has not said so is refused by the table itself. */
export const ALLOW_REMOVAL = `SELECT set_config('agentplatform.audit', 'retention', true)`;

export const auditMigrations: Migration[] = [
  {
    id: 'audit/0001-audit',
    sql: `
      CREATE TABLE audit (
        request_id text PRIMARY KEY,
        at bigint NOT NULL,
        operation text NOT NULL,
        account_id text,
        principal text,
        resource text,
        status integer NOT NULL,
        error_code text,
        source_ip text,
        user_agent text
      );
      CREATE INDEX audit_of_account ON audit (account_id, at DESC);`,
  },
  {
    // The journal brings each record once, so that the key guarded nothing, and random keys cost more than the rest of a row.
    id: 'audit/0002-no-key',
    sql: 'ALTER TABLE audit DROP CONSTRAINT audit_pkey',
  },
  {
    // Rows come in order of time: a summary of blocks finds the old ones and costs the hot path next to nothing.
    id: 'audit/0003-by-time',
    sql: 'CREATE INDEX audit_by_time ON audit USING brin (at)',
  },
  {
    // Refusals that are alike are one row: how many, and when the last of them was (NULL for one).
    id: 'audit/0004-counts',
    sql: 'ALTER TABLE audit ADD COLUMN count integer NOT NULL DEFAULT 1, ADD COLUMN until bigint',
  },
  {
    // A chain for each journal, which is for each data directory. Rows of before have none.
    id: 'audit/0005-chains',
    sql: `
      ALTER TABLE audit ADD COLUMN session_id text, ADD COLUMN on_behalf_of text,
        ADD COLUMN chain text, ADD COLUMN seq bigint, ADD COLUMN previous bytea, ADD COLUMN hash bytea;
      CREATE UNIQUE INDEX audit_chain ON audit (chain, seq) WHERE chain IS NOT NULL;
      CREATE TABLE audit_chains (chain text PRIMARY KEY, seq bigint NOT NULL, hash text NOT NULL);
      CREATE TABLE audit_joins (
        n bigint PRIMARY KEY, at bigint NOT NULL, previous text NOT NULL, heads text NOT NULL, hash text NOT NULL, signature text NOT NULL
      );
      CREATE TABLE audit_checkpoints (
        chain text PRIMARY KEY, seq bigint NOT NULL, hash text NOT NULL, removed bigint NOT NULL, before bigint NOT NULL,
        at bigint NOT NULL, signature text NOT NULL
      );`,
  },
  {
    id: 'audit/0006-append-only',
    sql: `
      CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF TG_OP = 'DELETE' AND current_setting('agentplatform.audit', true) = 'retention' THEN RETURN NULL; END IF;
        RAISE EXCEPTION 'rows of the audit trail are not changed, and removed by retention alone';
      END $$;
      CREATE TRIGGER audit_is_append_only AFTER UPDATE OR DELETE OR TRUNCATE ON audit
        FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();`,
  },
];
