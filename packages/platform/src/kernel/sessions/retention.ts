import { forgetMetered } from '../metering/index.ts';
import { type Executor, forgetRows, type Migration, type RetentionRule } from '../storage/index.ts';
import type { LogArchive } from './log-archive.ts';

/** What the rules below look for, apart from the tables themselves. */
export const sessionRetentionMigrations: Migration[] = [
  {
    id: 'sessions/retention/0001-indexes',
    sql: `
      CREATE INDEX sessions_ended ON sessions (ended_at) WHERE ended_at IS NOT NULL;
      CREATE INDEX session_usage_started ON session_usage (started_at);`,
  },
];

/** How long what is over is kept, in milliseconds. */
export interface SessionRetention {
  sessionsMs: number;
  usageMs: number;
}

/** Ended sessions and their logs, and what sessions used. A live session is never touched: it has no end, and lives 8 hours at most. */
export function sessionRetention(
  database: Executor,
  archive: Pick<LogArchive, 'forget'>,
  { sessionsMs, usageMs }: SessionRetention,
): RetentionRule[] {
  return [
    { name: 'ended sessions', keepMs: sessionsMs, forget: forgetRows(database, 'sessions', 'ended_at') },
    {
      name: 'logs of ended sessions',
      keepMs: sessionsMs,
      forget: (before, limit) => archive.forget(before, limit),
    },
    { name: 'usage of sessions', keepMs: usageMs, forget: forgetRows(database, 'session_usage', 'started_at') },
    { name: 'what was metered', keepMs: usageMs, forget: forgetMetered(database) },
  ];
}
