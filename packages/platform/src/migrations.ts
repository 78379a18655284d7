import { iamMigrations } from './kernel/auth/iam/sql-iam-store.ts';
import { journalMigrations } from './kernel/journal/index.ts';
import { secretMigrations } from './kernel/secrets/index.ts';
import { sessionRetentionMigrations } from './kernel/sessions/retention.ts';
import { sessionMigrations } from './kernel/sessions/tables.ts';
import { type Migration, storageMigrations } from './kernel/storage/index.ts';
import { auditMigrations } from './services/audit/index.ts';
import { codeInterpreterMigrations } from './services/code-interpreter/index.ts';
import { identityMigrations } from './services/identity/index.ts';
import { memoryMigrations } from './services/memory/index.ts';
import { resourcePolicyMigrations } from './services/resource-policies/index.ts';

/** Every room's tables, in the order in which they are made. */
export const migrations: readonly Migration[] = [
  ...storageMigrations,
  ...secretMigrations,
  ...iamMigrations,
  ...journalMigrations,
  ...sessionMigrations,
  ...sessionRetentionMigrations,
  ...auditMigrations,
  ...codeInterpreterMigrations,
  ...resourcePolicyMigrations,
  ...memoryMigrations,
  ...identityMigrations,
];
