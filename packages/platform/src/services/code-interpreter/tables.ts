import type { Migration } from '../../kernel/storage/index.ts';

/** Sessions as their callers know them; whether one still lives is known by the platform's sessions alone. */
export const codeInterpreterMigrations: Migration[] = [
  {
    id: 'code-interpreter/0001-sessions',
    sql: `
      CREATE TABLE code_interpreter_sessions (
        session_id text PRIMARY KEY,
        account_id text NOT NULL,
        interpreter_arn text NOT NULL,
        name text,
        timeout_seconds integer NOT NULL,
        created_at bigint NOT NULL
      );
      CREATE INDEX code_interpreter_sessions_of
        ON code_interpreter_sessions (account_id, interpreter_arn, created_at DESC, session_id DESC);`,
  },
  {
    // The owners of older sessions are unknown, so these sessions have none.
    id: 'code-interpreter/0002-owners',
    sql: `ALTER TABLE code_interpreter_sessions ADD COLUMN owner text;`,
  },
];
