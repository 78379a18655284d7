import type { Migration } from '../../kernel/storage/index.ts';
import { memoryMeteredMigration, memoryUsageMigration } from './usage-tables.ts';

/**
 * Event payloads are kept as JSON text, not jsonb: jsonb refuses U+0000, and a log gives back exactly what it was given.
 * Identifiers that are sorted or searched by prefix are COLLATE "C", so that their order is that of their bytes.
 */
export const memoryMigrations: Migration[] = [
  {
    id: 'memory/0001-events',
    sql: `
      CREATE TABLE memory_sessions (
        memory_id text NOT NULL,
        actor_id text COLLATE "C" NOT NULL,
        session_id text COLLATE "C" NOT NULL,
        created_at timestamptz NOT NULL,
        PRIMARY KEY (memory_id, actor_id, session_id)
      );
      CREATE TABLE memory_events (
        memory_id text NOT NULL,
        actor_id text COLLATE "C" NOT NULL,
        session_id text COLLATE "C" NOT NULL,
        event_id text COLLATE "C" NOT NULL,
        at timestamptz NOT NULL,
        created_at timestamptz NOT NULL,
        expires_at timestamptz NOT NULL,
        payload text NOT NULL,
        metadata jsonb NOT NULL,
        branch text,
        root_event_id text COLLATE "C",
        variables jsonb NOT NULL,
        client_token text,
        fingerprint text,
        pending boolean NOT NULL,
        PRIMARY KEY (memory_id, actor_id, session_id, event_id)
      );
      CREATE UNIQUE INDEX memory_events_token ON memory_events (memory_id, client_token) WHERE client_token IS NOT NULL;
      CREATE INDEX memory_events_expiry ON memory_events (expires_at);
      CREATE INDEX memory_events_pending ON memory_events (created_at) WHERE pending;
      CREATE TABLE memory_branches (
        memory_id text NOT NULL,
        actor_id text COLLATE "C" NOT NULL,
        session_id text COLLATE "C" NOT NULL,
        name text NOT NULL,
        parent text,
        root_event_id text COLLATE "C",
        PRIMARY KEY (memory_id, actor_id, session_id, name)
      );`,
  },
  {
    id: 'memory/0002-records',
    sql: `
      CREATE TABLE memory_records (
        id text COLLATE "C" PRIMARY KEY,
        memory_id text NOT NULL,
        strategy_id text NOT NULL,
        namespace text COLLATE "C" NOT NULL,
        /* Without slashes at the end: what exact and path lookups compare. */
        namespace_key text COLLATE "C" NOT NULL,
        content text NOT NULL,
        content_hash text NOT NULL,
        metadata jsonb NOT NULL,
        /* The moment the content is about: the caller's timestamp, or that of the newest event it came from. */
        at timestamptz NOT NULL,
        inserted_at timestamptz NOT NULL,
        /* Set when a newer record took this one's place; such a record is kept, but found by its id only. */
        valid_to timestamptz,
        superseded_by text COLLATE "C",
        event_ids jsonb NOT NULL,
        actor_id text,
        session_id text,
        words tsvector GENERATED ALWAYS AS (to_tsvector('english', content)) STORED
      );
      CREATE INDEX memory_records_namespace ON memory_records (memory_id, namespace_key, id) WHERE valid_to IS NULL;
      CREATE INDEX memory_records_hash ON memory_records (memory_id, strategy_id, namespace_key, content_hash);
      CREATE INDEX memory_records_words ON memory_records USING gin (words);`,
  },
  {
    id: 'memory/0003-extraction',
    sql: `
      CREATE TABLE memory_extraction_jobs (
        id text PRIMARY KEY,
        memory_id text NOT NULL,
        account_id text NOT NULL,
        strategy_id text NOT NULL,
        actor_id text NOT NULL,
        session_id text NOT NULL,
        status text NOT NULL,
        failure_reason text,
        /* [{eventId, count}] of the batch; for ingested data the messages themselves, as JSON text. */
        event_ids jsonb NOT NULL,
        inline text,
        variables jsonb NOT NULL,
        seq bigint GENERATED ALWAYS AS IDENTITY,
        created_at timestamptz NOT NULL
      );
      CREATE INDEX memory_extraction_jobs_list ON memory_extraction_jobs (memory_id, status, seq);
      CREATE TABLE memory_model_usage (
        memory_id text NOT NULL,
        strategy_id text NOT NULL,
        day date NOT NULL,
        model text NOT NULL,
        calls bigint NOT NULL,
        input_tokens bigint NOT NULL,
        output_tokens bigint NOT NULL,
        PRIMARY KEY (memory_id, strategy_id, day, model)
      );
      CREATE TABLE memory_purges (memory_id text PRIMARY KEY);`,
  },
  {
    id: 'memory/0004-vectors',
    sql: `
      /* Whether a vector of the present content by the present model is still to be made. */
      ALTER TABLE memory_records ADD COLUMN needs_vector boolean NOT NULL DEFAULT true;
      CREATE INDEX memory_records_vectors ON memory_records (inserted_at) WHERE needs_vector AND valid_to IS NULL;
      CREATE TABLE memory_vector_models (model text PRIMARY KEY, table_name text NOT NULL);`,
  },
  {
    id: 'memory/0005-held',
    sql: `
      /* Of HELD rows: what triggers count, and when the session will have been idle for long enough. */
      ALTER TABLE memory_extraction_jobs ADD COLUMN messages int NOT NULL DEFAULT 0;
      ALTER TABLE memory_extraction_jobs ADD COLUMN tokens bigint NOT NULL DEFAULT 0;
      ALTER TABLE memory_extraction_jobs ADD COLUMN due_at timestamptz;
      CREATE INDEX memory_extraction_jobs_held ON memory_extraction_jobs (memory_id, strategy_id, actor_id, session_id)
        WHERE status = 'HELD';`,
  },
  {
    id: 'memory/0006-attempts',
    sql: `
      ALTER TABLE memory_extraction_jobs ADD COLUMN attempts int NOT NULL DEFAULT 0;
      CREATE INDEX memory_extraction_jobs_queued ON memory_extraction_jobs (memory_id, strategy_id, actor_id, session_id, seq)
        WHERE status = 'QUEUED';`,
  },
  memoryUsageMigration,
  {
    id: 'memory/0008-record-expiry',
    sql: `
      /* The days that it was given last, and the moment that comes of them; both or neither. */
      ALTER TABLE memory_records ADD COLUMN expiry_days int;
      ALTER TABLE memory_records ADD COLUMN expires_at timestamptz;
      CREATE INDEX memory_records_expiry ON memory_records (expires_at) WHERE expires_at IS NOT NULL;`,
  },
  {
    id: 'memory/0009-jobs',
    sql: `
      /* Whose turn it is and what is tried again is the business of the server's jobs from here on. */
      INSERT INTO jobs (queue, key, data)
        SELECT 'memory-extraction', concat_ws(' ', memory_id, strategy_id, actor_id, session_id), json_build_object('id', id,
          'memoryId', memory_id, 'strategyId', strategy_id, 'actorId', actor_id, 'sessionId', session_id)::text
        FROM memory_extraction_jobs WHERE status = 'QUEUED' ORDER BY seq;
      DROP INDEX memory_extraction_jobs_queued;
      ALTER TABLE memory_extraction_jobs DROP COLUMN attempts;`,
  },
  {
    id: 'memory/0010-languages',
    sql: `
      /* By whose stemmer the words are found. Records of before count as English until their content is written anew. */
      ALTER TABLE memory_records ADD COLUMN language regconfig NOT NULL DEFAULT 'english';
      ALTER TABLE memory_records DROP COLUMN words;
      ALTER TABLE memory_records ADD COLUMN words tsvector GENERATED ALWAYS AS (to_tsvector(language, content)) STORED;
      CREATE INDEX memory_records_words ON memory_records USING gin (words);`,
  },
  memoryMeteredMigration,
];
