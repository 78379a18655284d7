import { every } from '../../kernel/every.ts';
import { platformKey } from '../../kernel/secrets/index.ts';
import type { ServiceModule } from '../../service-module.ts';
import { auditMigrations, auditSink, createAudit } from './index.ts';

const JOIN_MS = 60_000;
const DAY_MS = 24 * 3_600_000;

/** The audit trail: rows of answered requests, which every stage of the kernel writes through the journal. */
export const module: ServiceModule<'audit', never> = {
  migrations: auditMigrations,
  sinks: { audit: auditSink },
  async create(kernel) {
    const { config, secrets, accountId, clock, log } = kernel;
    const seed = await platformKey(secrets, accountId, 'audit');
    const audit = createAudit({ ...kernel, seed, keepMs: config.retention.auditDays * DAY_MS });
    let stop = async (): Promise<void> => undefined;
    return {
      operations: {},
      port: undefined,
      routes: audit.routes,
      retention: audit.retention,
      async start() {
        await audit.join();
        stop = every(clock, JOIN_MS, 'join the ends of the audit trail', audit.join, log);
      },
      async stop() {
        await stop();
        await audit.join();
      },
    };
  },
};
