import { type Executor, forgetRows, type RetentionRule } from '../../kernel/storage/index.ts';

/** Audit rows are forgotten after so long, in milliseconds. */
export function auditRetention(database: Executor, keepMs: number): RetentionRule {
  return { name: 'audit rows', keepMs, forget: forgetRows(database, 'audit', 'at') };
}
