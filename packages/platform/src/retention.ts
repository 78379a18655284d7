import type { Config } from './config.ts';
import type { LogArchive } from './kernel/sessions/log-archive.ts';
import { sessionRetention } from './kernel/sessions/retention.ts';
import { type Executor, forgetChanges, type RetentionRule } from './kernel/storage/index.ts';
import { auditRetention } from './services/audit/index.ts';
import { codeInterpreterRetention } from './services/code-interpreter/index.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** How long the platform remembers what is over, as the configuration says. */
export function retentionRules(
  { retention }: Pick<Config, 'retention'>,
  parts: { database: Executor; archive: Pick<LogArchive, 'forget'> },
): RetentionRule[] {
  const { database, archive } = parts;
  const sessionsMs = retention.sessionDays * DAY_MS;
  return [
    // A server that has heard of nothing for so long reads everything anew.
    { name: 'changes that servers were told of', keepMs: HOUR_MS, forget: forgetChanges(database) },
    auditRetention(database, retention.auditDays * DAY_MS),
    ...sessionRetention(database, archive, { sessionsMs, usageMs: retention.usageDays * DAY_MS }),
    codeInterpreterRetention(database, sessionsMs),
  ];
}
