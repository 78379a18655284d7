import type { Config } from './config.ts';
import { forgetFailedJobs } from './kernel/jobs/index.ts';
import { type LogArchive, sessionRetention } from './kernel/sessions/index.ts';
import { type Executor, forgetChanges, type RetentionRule } from './kernel/storage/index.ts';
import type { AnyModule } from './service-module.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** How long the platform remembers what is over, as the configuration says: sessions, and what each service keeps for a while. */
export function retentionRules(
  { retention }: Pick<Config, 'retention'>,
  parts: { database: Executor; archive: Pick<LogArchive, 'forget'>; modules: readonly Pick<AnyModule, 'retention'>[] },
): RetentionRule[] {
  const { database, archive, modules } = parts;
  const keeping = {
    auditMs: retention.auditDays * DAY_MS,
    sessionsMs: retention.sessionDays * DAY_MS,
    usageMs: retention.usageDays * DAY_MS,
  };
  return [
    // A server that has heard of nothing for so long reads everything anew.
    { name: 'changes that servers were told of', keepMs: HOUR_MS, forget: forgetChanges(database) },
    { name: 'jobs that failed', keepMs: 7 * DAY_MS, forget: forgetFailedJobs(database) },
    ...sessionRetention(database, archive, keeping),
    ...modules.flatMap((module) => module.retention?.(database, keeping) ?? []),
  ];
}
