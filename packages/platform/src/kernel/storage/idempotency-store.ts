import type { Clock } from '../clock.ts';
import { sleep } from '../clock.ts';
import type { Database, Executor } from './database.ts';

/** What one client token stands for. */
export interface IdempotencyKey {
  accountId: string;
  operation: string;
  token: string;
  /** Equal for equal inputs (the contract's `inputFingerprint`). */
  fingerprint: string;
}

/** The token was used before with another input. */
export class IdempotencyConflictError extends Error {
  override name = 'IdempotencyConflictError';
}

/** Another call with this token is at work and did not finish in time: try again. */
export class IdempotencyPendingError extends Error {
  override name = 'IdempotencyPendingError';
}

export interface IdempotencyOptions {
  database: Database;
  clock: Clock;
  /** Makes unique names for calls. */
  newId(): string;
  /** How long an answer is remembered, in milliseconds. */
  ttlMs?: number;
  /** How long a call may be silent before it counts as crashed, in milliseconds. */
  leaseMs?: number;
  /** How long a second call waits for the first, in milliseconds. */
  waitMs?: number;
  /** Bytes of answers to one operation in one account beyond which the oldest are forgotten (`trim`). */
  keptBytes?: number;
}

/** Work whose answer is kept; see `IdempotencyStore.run`. */
export type IdempotentWork<T> = (settle: Settle<T>) => Promise<T>;
/** Records the answer within a transaction, so that it and the work's own rows appear together. */
export type Settle<T> = (tx: Executor, response: T) => Promise<void>;

interface Row {
  fingerprint: string;
  response: unknown;
  done: number;
}

const POLL_MS = 50;
/** What a row takes beside its answer. */
const ROW_BYTES = 300;

/**
 * Answers to client tokens. The first call with a token does the work; every other with the same input gets the same
 * answer, waiting for it if it must; one with another input is refused.
 */
export class IdempotencyStore {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #ttlMs: number;
  readonly #leaseMs: number;
  readonly #waitMs: number;
  readonly #keptBytes: number;

  constructor(options: IdempotencyOptions) {
    this.#database = options.database;
    this.#clock = options.clock;
    this.#newId = options.newId;
    this.#ttlMs = options.ttlMs ?? 24 * 3_600_000;
    this.#leaseMs = options.leaseMs ?? 30_000;
    this.#waitMs = options.waitMs ?? 60_000;
    this.#keptBytes = options.keptBytes ?? 32 * 2 ** 20;
  }

  /**
   * Does `work` once for `key` and returns its answer, which must be a JSON value (`parse` reads it back).
   * Work that throws is forgotten: the next call tries again. If the process dies inside the work, the next call after
   * the lease does it again, unless the work called `settle` in the transaction that did it.
   * Throws `IdempotencyConflictError` and `IdempotencyPendingError`.
   */
  async run<T>(key: IdempotencyKey, parse: (response: unknown) => T, work: IdempotentWork<T>): Promise<T> {
    const owner = this.#newId();
    const deadline = this.#clock.monotonic() + this.#waitMs;
    for (;;) {
      if (await this.#claim(key, owner)) return this.#perform(key, owner, work);
      const row = await this.#find(key);
      if (row && row.fingerprint !== key.fingerprint) {
        throw new IdempotencyConflictError('this client token was used before with other parameters: take a new one');
      }
      if (row && row.done === 1) return parse(row.response);
      if (this.#clock.monotonic() > deadline) {
        throw new IdempotencyPendingError('a call with this client token is still at work: try again');
      }
      await sleep(this.#clock, POLL_MS);
    }
  }

  /** Deletes what has expired; returns how many. For a periodic job. */
  async sweep(): Promise<number> {
    return this.#database.execute('DELETE FROM idempotency_records WHERE expires_at <= $1', [this.#at(0)]);
  }

  /**
   * Deletes the oldest answers beyond what is kept of one operation in one account; returns how many. Whoever calls with ever new tokens
   * shortens how long his own kind of call is remembered, and fills no disk. For a periodic job, which comes often.
   */
  async trim(): Promise<number> {
    const [size] = await this.#database.query<{ bytes: number }>(
      `SELECT pg_total_relation_size('idempotency_records')::float8 AS bytes`,
    );
    if (!size || size.bytes < this.#keptBytes) return 0;
    return this.#database.execute(
      `DELETE FROM idempotency_records USING (
         SELECT account_id, operation, token,
                sum(coalesce(pg_column_size(response), 0) + ${ROW_BYTES})
                  OVER (PARTITION BY account_id, operation ORDER BY expires_at DESC, token) AS bytes
         FROM idempotency_records WHERE done = 1
       ) kept
       WHERE kept.bytes > $1 AND idempotency_records.account_id = kept.account_id
         AND idempotency_records.operation = kept.operation AND idempotency_records.token = kept.token
         AND idempotency_records.done = 1`,
      [this.#keptBytes],
    );
  }

  async #claim(key: IdempotencyKey, owner: string): Promise<boolean> {
    const changed = await this.#database.execute(
      `INSERT INTO idempotency_records (account_id, operation, token, fingerprint, owner, done, expires_at)
       VALUES ($1, $2, $3, $4, $5, 0, $6)
       ON CONFLICT (account_id, operation, token) DO UPDATE
         SET fingerprint = excluded.fingerprint, owner = excluded.owner, done = 0, response = NULL,
             expires_at = excluded.expires_at
         WHERE idempotency_records.expires_at <= $7`,
      [key.accountId, key.operation, key.token, key.fingerprint, owner, this.#at(this.#leaseMs), this.#at(0)],
    );
    return changed === 1;
  }

  async #find(key: IdempotencyKey): Promise<Row | undefined> {
    const [row] = await this.#database.query<Row>(
      `SELECT fingerprint, response, done FROM idempotency_records
       WHERE account_id = $1 AND operation = $2 AND token = $3 AND expires_at > $4`,
      [key.accountId, key.operation, key.token, this.#at(0)],
    );
    return row;
  }

  async #perform<T>(key: IdempotencyKey, owner: string, work: IdempotentWork<T>): Promise<T> {
    const mine = [key.accountId, key.operation, key.token, owner];
    const whose = 'account_id = $1 AND operation = $2 AND token = $3 AND owner = $4';
    let settled = false;
    const settle: Settle<T> = async (tx, response) => {
      const stored = await tx.execute(
        `UPDATE idempotency_records SET done = 1, response = $5, expires_at = $6 WHERE ${whose}`,
        [...mine, JSON.stringify(response ?? null), this.#at(this.#ttlMs)],
      );
      // The lease was lost to another call, which does the same work: this one must leave nothing behind.
      if (stored === 0) throw new IdempotencyPendingError('another call took over this client token: try again');
      settled = true;
    };
    const stopRenewing = this.#renew(whose, mine);
    try {
      const response = await work(settle);
      if (!settled) await settle(this.#database, response);
      return response;
    } catch (error) {
      // A record that cannot be deleted now is taken over once its lease has run out.
      await this.#database.execute(`DELETE FROM idempotency_records WHERE done = 0 AND ${whose}`, mine).catch(() => {});
      throw error;
    } finally {
      stopRenewing();
    }
  }

  #renew(whose: string, mine: string[]): () => void {
    let cancel = (): void => {};
    let stopped = false;
    const arm = (): void => {
      cancel = this.#clock.after(this.#leaseMs / 3, () => {
        this.#database
          .execute(`UPDATE idempotency_records SET expires_at = $5 WHERE done = 0 AND ${whose}`, [
            ...mine,
            this.#at(this.#leaseMs),
          ])
          .catch(() => {})
          .finally(() => stopped || arm());
      });
    };
    arm();
    return () => {
      stopped = true;
      cancel();
    };
  }

  #at(ms: number): Date {
    return new Date(this.#clock.now() + ms);
  }
}
