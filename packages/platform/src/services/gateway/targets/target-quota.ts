import { errors } from '@agentplatform/contract';
import type { Executor } from '../../../kernel/storage/index.ts';
import type { Problem } from '../tools/index.ts';
import type { Offers } from './offers.ts';
import { TARGET_KIND } from './target.ts';

/** What each offer counts for beside its JSON: its row, its part of indexes, and the vector of its text. */
const OFFER_BYTES = 4096;

/** What the targets of one account may take of the database together, in bytes. They know themselves how much they offer (`TargetData.bytes`). */
export class TargetQuota {
  readonly #mostBytes: number;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** Nobody else counts or adds targets of this account until the transaction ends. */
  async lock(accountId: string, tx: Executor): Promise<void> {
    await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 34))', [accountId]);
  }

  /** Rejects with ServiceQuotaExceededException unless there is room for so many bytes more. */
  async need(accountId: string, bytes: number, tx: Executor): Promise<void> {
    const held = await bytesOf(accountId, undefined, tx);
    if (held + bytes <= this.#mostBytes) return;
    throw errors.quota(
      `The targets of the account hold ${held} bytes, and with the ${bytes} of this one they would hold more than ${this.#mostBytes}.`,
      { remedy: 'Delete targets, give them smaller documents, or raise quotas.gatewayBytesPerAccount.' },
    );
  }

  /** Why a target cannot offer so much; undefined where it can. */
  async problem(
    { accountId, arn }: { accountId: string; arn: string },
    bytes: number,
    tx: Executor,
  ): Promise<Problem | undefined> {
    if ((await bytesOf(accountId, arn, tx)) + bytes <= this.#mostBytes) return undefined;
    return {
      severity: 'error',
      message: `All targets of the account together may take ${this.#mostBytes} bytes, and this one takes ${bytes}. Delete others, give it a smaller document, or raise quotas.gatewayBytesPerAccount.`,
    };
  }
}

/** What these offers count for. */
export function bytesOfOffers(offers: Offers, jsonBytes: number): number {
  return jsonBytes + OFFER_BYTES * Object.values(offers).reduce((sum, { length }) => sum + length, 0);
}

/** Bytes of all targets of an account except that one; rows as they are stored. */
async function bytesOf(accountId: string, but: string | undefined, tx: Executor): Promise<number> {
  const [row] = await tx.query<{ bytes: number }>(
    `SELECT coalesce(sum(pg_column_size(r.data) + coalesce((r.data ->> 'bytes')::bigint, 0)
         + coalesce(pg_column_size(d.document), 0)), 0)::float8 AS bytes
     FROM resources r LEFT JOIN gateway_documents d ON d.target_arn = r.arn
     WHERE r.account_id = $1 AND r.kind = $2 AND r.arn <> $3`,
    [accountId, TARGET_KIND, but ?? ''],
  );
  return row?.bytes ?? 0;
}
