import { iamMigrations } from './kernel/auth/index.ts';
import { jobMigrations } from './kernel/jobs/index.ts';
import { journalMigrations } from './kernel/journal/index.ts';
import { meteringMigrations } from './kernel/metering/index.ts';
import { secretMigrations } from './kernel/secrets/index.ts';
import { sessionMigrations, sessionRetentionMigrations } from './kernel/sessions/index.ts';
import { type Migration, storageMigrations } from './kernel/storage/index.ts';
import type { AnyModule } from './service-module.ts';

/** Every room's tables, in the order in which they are made: those of the kernel, then those of each service. */
export function allMigrations(modules: readonly Pick<AnyModule, 'migrations'>[]): Migration[] {
  return [
    ...storageMigrations,
    ...secretMigrations,
    ...iamMigrations,
    ...journalMigrations,
    ...jobMigrations,
    ...meteringMigrations,
    ...sessionMigrations,
    ...sessionRetentionMigrations,
    ...modules.flatMap(({ migrations = [] }) => migrations),
  ];
}
