import type { Migration } from '../../kernel/storage/index.ts';

/** Sessions as their callers asked for them; whether one still lives is known by the platform's sessions alone. */
export const browserMigrations: Migration[] = [
  {
    id: 'browser/0001-sessions',
    sql: `
      CREATE TABLE browser_sessions (
        session_id text PRIMARY KEY,
        account_id text NOT NULL,
        browser_arn text NOT NULL,
        owner text NOT NULL,
        asked jsonb NOT NULL,
        automation text NOT NULL,
        created_at bigint NOT NULL,
        updated_at bigint NOT NULL
      );
      CREATE INDEX browser_sessions_of ON browser_sessions (account_id, browser_arn, created_at DESC, session_id DESC);`,
  },
];
