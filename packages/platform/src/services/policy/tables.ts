import type { Executor, Migration, RetentionRule } from '../../kernel/storage/index.ts';

/** The tables of the events of policy sessions and of decisions. Engines, policies and generations are in the table `resources`. */
export const policyMigrations: readonly Migration[] = [
  {
    id: 'policy/0001-policy',
    sql: `
      /* Whoever decides in a session holds its row: decisions of one session are in order on all servers. */
      CREATE TABLE policy_sessions (
        engine_arn text NOT NULL,
        session_id text NOT NULL,
        /* Who began it; nobody else goes on with it. */
        principal text NOT NULL,
        /* Of the engine when it began. */
        epoch bigint NOT NULL,
        /* Tells it from one of the same id before it. */
        began bigint NOT NULL,
        last_seq bigint NOT NULL,
        /* Of the last event, in ms since the epoch: each event is later than the one before. */
        last_at bigint NOT NULL,
        used_at timestamptz NOT NULL,
        PRIMARY KEY (engine_arn, session_id)
      );
      CREATE INDEX policy_sessions_used_at ON policy_sessions (used_at);
      CREATE TABLE policy_events (
        engine_arn text NOT NULL,
        session_id text NOT NULL,
        seq bigint NOT NULL,
        at bigint NOT NULL,
        event text NOT NULL,
        PRIMARY KEY (engine_arn, session_id, seq),
        FOREIGN KEY (engine_arn, session_id) REFERENCES policy_sessions ON DELETE CASCADE
      );
      CREATE TABLE policy_decisions (
        id text NOT NULL,
        request_id text NOT NULL,
        at bigint NOT NULL,
        account_id text NOT NULL,
        gateway_arn text NOT NULL,
        engine_arn text NOT NULL,
        mode text NOT NULL,
        principal_type text NOT NULL,
        principal text NOT NULL,
        tags jsonb NOT NULL,
        action text NOT NULL,
        phase text NOT NULL,
        decision text NOT NULL,
        /* What decides with the policies that are LOG_ONLY. */
        would_be text NOT NULL,
        policies jsonb NOT NULL,
        log_only jsonb NOT NULL,
        errors jsonb NOT NULL,
        /* SHA-256 of the input as canonical JSON. */
        digest text NOT NULL,
        session_id text,
        duration_us bigint NOT NULL
      );
      CREATE INDEX policy_decisions_of_engine ON policy_decisions (engine_arn, at);
      CREATE INDEX policy_decisions_by_request ON policy_decisions (request_id);
      CREATE INDEX policy_decisions_by_time ON policy_decisions USING brin (at);`,
  },
];

/** The longest window of a temporal policy. No policy uses older events. */
export const LONGEST_WINDOW_MS = 24 * 3_600_000;

/** A session that nobody used for longer than any window says nothing any more. `auditMs`: how long decisions are kept. */
export function policyRetention(database: Executor, { auditMs }: { auditMs: number }): RetentionRule[] {
  return [
    {
      ...{ name: 'policy sessions', keepMs: LONGEST_WINDOW_MS },
      forget: (before, limit) =>
        database.execute(
          `DELETE FROM policy_sessions WHERE (engine_arn, session_id) IN
             (SELECT engine_arn, session_id FROM policy_sessions WHERE used_at < $1 ORDER BY used_at LIMIT $2) AND used_at < $1`,
          [new Date(before), limit],
        ),
    },
    {
      ...{ name: 'decisions by policies', keepMs: auditMs },
      forget: (before, limit) =>
        database.execute(
          'DELETE FROM policy_decisions WHERE ctid = ANY (ARRAY(SELECT ctid FROM policy_decisions WHERE at < $1 LIMIT $2))',
          [before, limit],
        ),
    },
  ];
}
