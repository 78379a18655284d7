import type { Executor, Migration, RetentionRule } from '../../kernel/storage/index.ts';
import { portalMigrations, portalRetention } from './consent/portal-sessions.ts';
import { signInMigrations, signInRetention } from './consent/portal-sign-ins.ts';
import { flowMigrations, flowRetention } from './flows/tables.ts';

/** Identities stand in the table `resources`; runtimes that are older than this room get theirs here. */
export const identityMigrations: Migration[] = [
  {
    id: 'identity/0001-of-runtimes',
    sql: `
      INSERT INTO resources (arn, kind, account_id, id, parent, name, data, tags, version, created_at, updated_at)
      SELECT replace(arn, ':runtime/', ':workload-identity-directory/default/workload-identity/'), 'workload-identity',
             account_id, id, arn, id, '{"allowedResourceOauth2ReturnUrls": []}', '{}', 1, created_at, created_at
      FROM resources WHERE kind = 'agent-runtime' ORDER BY seq`,
  },
  ...flowMigrations,
  ...portalMigrations,
  ...signInMigrations,
];

export const identityRetention = (database: Executor): RetentionRule[] => [
  ...flowRetention(database),
  portalRetention(database),
  signInRetention(database),
];
