import { type Executor, forgetRows, type Migration, type RetentionRule } from '../../kernel/storage/index.ts';

/** Conversations by session. They outlive the sandbox of their session. */
export const harnessMigrations: Migration[] = [
  {
    id: 'harness/0001-conversations',
    sql: `
      CREATE TABLE harness_conversations (
        harness_arn text NOT NULL,
        session_id text NOT NULL,
        messages text NOT NULL,
        open_turn text,
        revision integer NOT NULL,
        updated_at bigint NOT NULL,
        PRIMARY KEY (harness_arn, session_id)
      );
      CREATE INDEX harness_conversations_updated ON harness_conversations (updated_at);`,
  },
];

/** Conversations that nobody went on with for so long are forgotten, in milliseconds. */
export function harnessRetention(database: Executor, keepMs: number): RetentionRule {
  return {
    name: 'conversations of harnesses',
    keepMs,
    forget: forgetRows(database, 'harness_conversations', 'updated_at'),
  };
}
