import type { Migration } from '../../kernel/storage/index.ts';

/** Spans by the day on which they came, each day in a partition of its own (`partitions.ts`), and a line for each session. */
export const observabilityMigrations: Migration[] = [
  {
    id: 'observability/0001-spans',
    sql: `
      CREATE TABLE spans (
        day date NOT NULL,
        account_id text NOT NULL,
        trace_id text NOT NULL,
        span_id text NOT NULL,
        parent_span_id text NOT NULL,
        agent text NOT NULL,
        session_id text NOT NULL,
        user_id text NOT NULL,
        service text NOT NULL,
        scope text NOT NULL,
        name text NOT NULL,
        kind smallint NOT NULL,
        operation text NOT NULL,
        agent_name text NOT NULL,
        model text NOT NULL,
        tool text NOT NULL,
        input_tokens bigint NOT NULL,
        output_tokens bigint NOT NULL,
        started_us bigint NOT NULL,
        duration_us bigint NOT NULL,
        status smallint NOT NULL,
        status_message text NOT NULL,
        names_version smallint NOT NULL,
        -- JSON as text: what was sent may hold what jsonb refuses.
        detail text NOT NULL,
        received_at bigint NOT NULL,
        -- What is sent again is there once.
        PRIMARY KEY (day, account_id, trace_id, span_id)
      ) PARTITION BY RANGE (day);
      CREATE INDEX spans_of_trace ON spans (account_id, trace_id);
      CREATE INDEX spans_of_session ON spans (account_id, session_id, started_us);
      CREATE INDEX spans_newest ON spans (account_id, received_at);
      CREATE TABLE traced_sessions (
        account_id text NOT NULL,
        session_id text NOT NULL,
        agent text NOT NULL,
        user_id text NOT NULL,
        first_us bigint NOT NULL,
        last_us bigint NOT NULL,
        spans bigint NOT NULL,
        errors bigint NOT NULL,
        input_tokens bigint NOT NULL,
        output_tokens bigint NOT NULL,
        received_at bigint NOT NULL,
        PRIMARY KEY (account_id, session_id)
      );
      CREATE INDEX traced_sessions_newest ON traced_sessions (account_id, last_us DESC, session_id DESC);
      CREATE INDEX traced_sessions_old ON traced_sessions (received_at);`,
  },
  {
    // What `StartQuery` was asked, for `GetQueryResults` on whichever server.
    id: 'observability/0002-log-queries',
    sql: `
      CREATE TABLE log_queries (id text PRIMARY KEY, account_id text NOT NULL, query text NOT NULL, at bigint NOT NULL);
      CREATE INDEX log_queries_old ON log_queries (at);`,
  },
];
