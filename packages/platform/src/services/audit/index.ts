import type { Clock } from '../../kernel/clock.ts';
import type { RouteSet } from '../../kernel/http/index.ts';
import type { Journal } from '../../kernel/journal/index.ts';
import type { Database, RetentionRule } from '../../kernel/storage/index.ts';
import { AuditKey } from './audit-key.ts';
import { auditRoutes } from './audit-routes.ts';
import { cloudTrailRoutes } from './cloudtrail-routes.ts';
import { exportAudit } from './export.ts';
import { readHeadFile } from './head-file.ts';
import { joinHeads, readKnownJoin } from './joins.ts';
import type { LookupDeps } from './lookup-events.ts';
import { auditRetention, joinRetention } from './retention.ts';
import { type AuditReport, verifyAudit } from './verify.ts';

export { auditSink } from './audit-sink.ts';
export { auditMigrations } from './tables.ts';

export interface AuditDeps extends Omit<LookupDeps, 'database'> {
  database: Database;
  journal: Pick<Journal<Record<string, unknown>>, 'flush' | 'origin'>;
  /** What signs are made with: 32 bytes. */
  seed: Uint8Array;
  /** How long rows are kept, in milliseconds. */
  keepMs: number;
  clock: Clock;
}

export interface Audit {
  routes: readonly RouteSet[];
  retention: readonly RetentionRule[];
  /** Signs and joins the ends of all chains. */
  join(): Promise<void>;
  /** What is said of the whole trail as it is now. */
  verify(): Promise<AuditReport>;
}

/** The audit trail: rows of answered requests in chains, how it is proved that they are whole, and how they are read. */
export function createAudit(deps: AuditDeps): Audit {
  const { database, journal, seed, keepMs, clock, region, accountId } = deps;
  const key = new AuditKey(seed);
  const { id: chain, directory } = journal.origin;
  let verifying: Promise<AuditReport> | undefined;
  const verify = (): Promise<AuditReport> => {
    // Whoever asks meanwhile has the same answer: it reads all that there is.
    verifying ??= look().finally(() => {
      verifying = undefined;
    });
    return verifying;
  };
  return {
    join: () => joinHeads(database, { key, directory, now: clock.now() }),
    verify,
    routes: [
      auditRoutes({ verify, export: (from, to) => exportAudit(database, { from, to }, { region, accountId }) }),
      cloudTrailRoutes(deps),
    ],
    retention: [auditRetention({ database, key, clock }, keepMs), joinRetention(database, keepMs)],
  };

  async function look(): Promise<AuditReport> {
    await journal.flush();
    const known = { chain, head: await readHeadFile(directory), join: await readKnownJoin(directory) };
    return verifyAudit(database, key, known);
  }
}
