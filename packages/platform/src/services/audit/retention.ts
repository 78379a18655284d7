import type { Clock } from '../../kernel/clock.ts';
import { type Database, type Executor, forgetRows, type RetentionRule } from '../../kernel/storage/index.ts';
import type { AuditKey } from './audit-key.ts';
import type { Head } from './audit-row.ts';
import { ALLOW_REMOVAL } from './tables.ts';

/** Says that retention has removed a chain up to there, and nothing beyond; signed. */
export interface Checkpoint extends Head {
  chain: string;
  /** Rows in all, at the last time from before that moment, and when that was. */
  removed: number;
  before: number;
  at: number;
  signature: string;
}

export const CHECKPOINT_COLUMNS = 'chain, seq, hash, removed, before, at, signature';

/** What the signature of a checkpoint is over. */
export const statementOf = ({ chain, seq, hash, removed, before, at }: Omit<Checkpoint, 'signature'>): unknown[] => [
  ...[chain, seq, hash, removed, before, at],
];

export interface AuditRetentionDeps {
  database: Database;
  key: AuditKey;
  clock: Pick<Clock, 'now'>;
}

/**
 * Audit rows are forgotten after so long, in milliseconds: from the beginning of each chain on, up to the first row that is younger. A signed checkpoint
 * closes what is gone, in the same transaction.
 */
export function auditRetention({ database, key, clock }: AuditRetentionDeps, keepMs: number): RetentionRule {
  return {
    name: 'audit rows',
    keepMs,
    forget: (before, limit) =>
      database.transaction(async (tx) => {
        await tx.exec(ALLOW_REMOVAL);
        let count = await forgetRows(tx, 'audit', 'at', 'chain IS NULL')(before, limit);
        for (const { chain } of await tx.query<{ chain: string }>('SELECT chain FROM audit_chains ORDER BY chain'))
          if (count < limit)
            count += await forgetBegin(tx, { chain, before: Math.floor(before), limit: limit - count });
        return count;
      }),
  };

  async function forgetBegin(
    tx: Executor,
    { chain, before, limit }: { chain: string; before: number; limit: number },
  ): Promise<number> {
    const rows = await tx.query<Head & { at: number }>(
      `SELECT seq, at, encode(hash, 'hex') AS hash FROM audit WHERE chain = $1 ORDER BY seq LIMIT $2`,
      [chain, limit],
    );
    const young = rows.findIndex(({ at }) => at >= before);
    const old = young < 0 ? rows : rows.slice(0, young);
    const last = old.at(-1);
    if (!last) return 0;
    await tx.execute('DELETE FROM audit WHERE chain = $1 AND seq <= $2', [chain, last.seq]);
    const [former] = await tx.query<Checkpoint>(
      `SELECT ${CHECKPOINT_COLUMNS} FROM audit_checkpoints WHERE chain = $1 FOR UPDATE`,
      [chain],
    );
    const removed = (former?.removed ?? 0) + old.length;
    const checkpoint = { chain, seq: last.seq, hash: last.hash, removed, before, at: Math.round(clock.now()) };
    await tx.execute(
      `INSERT INTO audit_checkpoints (${CHECKPOINT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)
       ON CONFLICT (chain) DO UPDATE SET seq = excluded.seq, hash = excluded.hash, removed = excluded.removed,
         before = excluded.before, at = excluded.at, signature = excluded.signature`,
      [...statementOf(checkpoint), key.sign('checkpoint', statementOf(checkpoint))],
    );
    return old.length;
  }
}

/** Joins that are older say nothing of rows that are still there; those that are left have signatures of their own. The last one stays. */
export function joinRetention(database: Executor, keepMs: number): RetentionRule {
  const forget = forgetRows(database, 'audit_joins', 'at', 'n < (SELECT max(n) FROM audit_joins)');
  return { name: 'joined ends of the audit trail', keepMs, forget };
}
