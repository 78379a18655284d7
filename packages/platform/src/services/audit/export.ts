import type { Executor } from '../../kernel/storage/index.ts';
import { CHAINED_COLUMNS } from './audit-row.ts';
import { cloudTrailRecord, type TrailRow } from './cloudtrail-event.ts';

const PAGE = 1_000;

/**
 * The rows from `from` on and before `to`, in milliseconds since the epoch, chain by chain in their order, those without a chain first: each an event of
 * CloudTrail's as a line of JSON. Holds one page; rows that come meanwhile are in it at the end of their chain.
 */
export async function* exportAudit(
  database: Pick<Executor, 'query'>,
  { from, to }: { from: number; to: number },
  place: { region: string; accountId: string },
): AsyncGenerator<string> {
  let after = { chain: '', seq: 0, ctid: '(0,0)' };
  for (;;) {
    const rows = await database.query<TrailRow & { ctid: string }>(
      `SELECT ${CHAINED_COLUMNS}, ctid::text AS ctid FROM audit
       WHERE at >= $1 AND at < $2 AND (coalesce(chain, ''), coalesce(seq, 0), ctid) > ($3, $4::bigint, $5::tid)
       ORDER BY coalesce(chain, ''), coalesce(seq, 0), ctid LIMIT ${PAGE}`,
      [from, to, after.chain, after.seq, after.ctid],
    );
    for (const { ctid, ...row } of rows) {
      after = { chain: row.chain ?? '', seq: row.seq ?? 0, ctid };
      yield `${JSON.stringify(cloudTrailRecord(row, place))}\n`;
    }
    if (rows.length < PAGE) return;
  }
}
