import type { Migration } from '../storage/index.ts';

export const jobMigrations: Migration[] = [
  {
    // A job that is done has no row. `data` is JSON as text: jsonb refuses U+0000. Jobs of one key are in the order of `seq`; the unique
    // index is what keeps two of them from running at once, whatever servers see of each other. `state` is waiting, behind (waiting,
    // and another of its key is before it), running or failed. A server that takes several of one key holds the line by the last of them:
    // the others are `followed`. Jobs were kept by a library before, in a schema of its own.
    id: 'jobs/0001-jobs',
    sql: `
      CREATE TABLE jobs (
        id text PRIMARY KEY DEFAULT gen_random_uuid()::text,
        seq bigint GENERATED ALWAYS AS IDENTITY,
        queue text NOT NULL,
        key text,
        data text NOT NULL,
        state text NOT NULL DEFAULT 'waiting',
        followed boolean NOT NULL DEFAULT false,
        due_at timestamptz NOT NULL DEFAULT now(),
        runs int NOT NULL DEFAULT 0,
        failures int NOT NULL DEFAULT 0,
        lease_until timestamptz,
        error text,
        failed_at timestamptz
      );
      CREATE INDEX jobs_waiting ON jobs (queue, seq) WHERE state = 'waiting';
      CREATE INDEX jobs_line ON jobs (queue, key, seq) WHERE state <> 'failed' AND key IS NOT NULL;
      CREATE UNIQUE INDEX jobs_running ON jobs (queue, key) WHERE state = 'running' AND NOT followed;
      CREATE INDEX jobs_failed ON jobs (queue, failed_at) WHERE state = 'failed';
      -- A function, because its plan is kept: the embedded database plans each statement anew, and that is most of what an INSERT costs.
      CREATE FUNCTION waits_in_line(queue_name text, line text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$ BEGIN
        RETURN line IS NOT NULL AND EXISTS (SELECT FROM jobs WHERE queue = queue_name AND key = line AND state <> 'failed');
      END $$;
      DROP SCHEMA IF EXISTS pgboss CASCADE;`,
  },
  {
    // The whole INSERT for the same reason.
    id: 'jobs/0002-enqueue',
    sql: `
      CREATE FUNCTION enqueue_job(new_id text, queue_name text, line text, new_data text, due timestamptz) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO jobs (id, queue, key, data, due_at, state) VALUES (new_id, queue_name, line, new_data, coalesce(due, now()),
          CASE WHEN line IS NOT NULL AND EXISTS (SELECT FROM jobs WHERE queue = queue_name AND key = line AND state <> 'failed')
            THEN 'behind' ELSE 'waiting' END);
      END $$;
      DROP FUNCTION waits_in_line(text, text);`,
  },
];
