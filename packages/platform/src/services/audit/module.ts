import type { ServiceModule } from '../../service-module.ts';
import { auditMigrations, auditRetention, auditSink } from './index.ts';

/** The audit trail: rows of answered requests, which every stage of the kernel writes through the journal. */
export const module: ServiceModule<'audit', never> = {
  migrations: auditMigrations,
  retention: (database, { auditMs }) => [auditRetention(database, auditMs)],
  sinks: { audit: auditSink },
  create: () => ({ operations: {}, port: undefined }),
};
