import { type Executor, forgetRows, type RetentionRule } from '../../kernel/storage/index.ts';

/** What callers asked of sessions is forgotten after so long, in milliseconds: a day at least, so that none of them still lives. */
export function browserRetention(database: Executor, keepMs: number): RetentionRule {
  return { name: 'browser sessions', keepMs, forget: forgetRows(database, 'browser_sessions', 'created_at') };
}
