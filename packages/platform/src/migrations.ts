import { iamMigrations } from './kernel/auth/iam/sql-iam-store.ts';
import { jobMigrations } from './kernel/jobs/index.ts';
import { journalMigrations } from './kernel/journal/index.ts';
import { secretMigrations } from './kernel/secrets/index.ts';
import { sessionRetentionMigrations } from './kernel/sessions/retention.ts';
import { sessionMigrations } from './kernel/sessions/tables.ts';
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
    ...sessionMigrations,
    ...sessionRetentionMigrations,
    ...modules.flatMap(({ migrations = [] }) => migrations),
  ];
}
