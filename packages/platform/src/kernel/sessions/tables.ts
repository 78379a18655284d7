import type { Migration } from '../storage/index.ts';

/** One row per sandbox that ever served a session, and what it used. */
export const sessionMigrations: Migration[] = [
  {
    id: 'sessions/0001-sessions',
    sql: `
      CREATE TABLE sessions (
        sandbox_id text PRIMARY KEY,
        account_id text NOT NULL,
        resource_arn text NOT NULL,
        session_id text NOT NULL,
        version text NOT NULL,
        idle_seconds double precision NOT NULL,
        max_lifetime_seconds double precision NOT NULL,
        port integer NOT NULL,
        created_at bigint NOT NULL,
        activated_at bigint,
        ended_at bigint,
        end_reason text
      );
      -- The rule "no id ever has two sandboxes" as the database sees it.
      CREATE UNIQUE INDEX sessions_live ON sessions (resource_arn, session_id) WHERE ended_at IS NULL;
      CREATE INDEX sessions_of_resource ON sessions (resource_arn, created_at DESC);
      CREATE TABLE session_usage (
        sandbox_id text PRIMARY KEY,
        account_id text NOT NULL,
        resource_arn text NOT NULL,
        session_id text NOT NULL,
        started_at bigint NOT NULL,
        last_sample_at bigint NOT NULL,
        cpu_seconds double precision NOT NULL,
        memory_high_water_bytes bigint NOT NULL,
        final boolean NOT NULL
      );
      CREATE INDEX session_usage_of_account ON session_usage (account_id, started_at);`,
  },
  {
    id: 'sessions/0002-servers',
    sql: `
      -- Never the same twice, so that what an earlier life of a server still writes can be told.
      CREATE SEQUENCE server_epochs;
      CREATE TABLE servers (
        server_id text PRIMARY KEY,
        epoch bigint NOT NULL,
        beat bigint NOT NULL,
        lease_ms bigint NOT NULL,
        address text,
        self_ending boolean NOT NULL
      );
      -- Rows of before belong to the one server that there was, whichever comes first.
      ALTER TABLE sessions ADD COLUMN server_id text NOT NULL DEFAULT '';
      ALTER TABLE sessions ADD COLUMN cpu_seconds_before double precision NOT NULL DEFAULT 0;
      CREATE INDEX sessions_of_server ON sessions (server_id) WHERE ended_at IS NULL;`,
  },
  {
    id: 'sessions/0003-sandboxes-of-all-providers-end-with-the-lease',
    sql: 'ALTER TABLE servers DROP COLUMN self_ending;',
  },
  {
    // Told from the ARN once, for the rows of before there were kinds.
    id: 'sessions/0004-kinds',
    sql: `
      ALTER TABLE sessions ADD COLUMN kind text NOT NULL DEFAULT 'runtime';
      UPDATE sessions SET kind = 'code-interpreter' WHERE resource_arn LIKE '%:code-interpreter%';
      ALTER TABLE sessions ALTER COLUMN kind DROP DEFAULT;`,
  },
  {
    // Of what is older than its session's row the kind is not known any more.
    id: 'sessions/0005-usage-by-kind',
    sql: `
      ALTER TABLE session_usage ADD COLUMN kind text NOT NULL DEFAULT '';
      UPDATE session_usage SET kind = sessions.kind FROM sessions WHERE sessions.sandbox_id = session_usage.sandbox_id;
      ALTER TABLE session_usage ALTER COLUMN kind DROP DEFAULT;`,
  },
  {
    // How far a session is billed. What was used before there were bills is billed on the day that it began.
    id: 'sessions/0006-billed',
    sql: `
      ALTER TABLE session_usage ADD COLUMN billed_seconds bigint NOT NULL DEFAULT 0, ADD COLUMN billed_cpu_micros bigint NOT NULL DEFAULT 0;
      UPDATE session_usage SET billed_seconds = greatest(0, (last_sample_at - started_at) / 1000), billed_cpu_micros = round(cpu_seconds * 1e6);
      INSERT INTO metered (day, account_id, piece, resource_arn, session_id, user_id, unit, quantity)
        SELECT day::date, account_id, kind, resource_arn, session_id, '', unit, sum(quantity) FROM (
          SELECT to_timestamp(started_at / 1000) AT TIME ZONE 'UTC' AS day, account_id, kind, resource_arn, session_id,
            'memory-kib-seconds' AS unit, billed_seconds * ((greatest(memory_high_water_bytes, 134217728) + 1023) / 1024) AS quantity FROM session_usage
          UNION ALL
          SELECT to_timestamp(started_at / 1000) AT TIME ZONE 'UTC', account_id, kind, resource_arn, session_id,
            'cpu-microseconds', billed_cpu_micros FROM session_usage) AS used
        GROUP BY day::date, account_id, kind, resource_arn, session_id, unit;
      -- What is asked for by its last sample.
      DROP INDEX session_usage_of_account;
      CREATE INDEX session_usage_of_account ON session_usage (account_id, last_sample_at);`,
  },
];
