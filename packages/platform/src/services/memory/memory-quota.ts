import { errors } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/storage/index.ts';
import type { Memory } from './memory.ts';

export interface MemoryQuotaLimits {
  /** Bytes. */
  ofMemory: number;
  ofAccount: number;
}

interface Usage {
  ofMemory: number;
  ofAccount: number;
  until: number;
}

/** How long a sum is believed, so that events do not ask for it one by one; what is written meanwhile may go beyond the quota. */
const BELIEVED_MS = 1000;
const MAX_BELIEVED = 10_000;

/** Keeps memories from taking more of the database than they may. What they take is counted by the database itself (`usage-tables.ts`). */
export class MemoryQuota {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #limits: MemoryQuotaLimits;
  readonly #believed = new Map<string, Usage>();

  constructor(database: Database, clock: Clock, limits: MemoryQuotaLimits) {
    this.#database = database;
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Throws ServiceQuotaExceededException when the memory, or all of its account together, hold as much as they may. */
  async need(memory: Memory): Promise<void> {
    const known = this.#believed.get(memory.id);
    const { ofMemory, ofAccount } = known && known.until > this.#clock.monotonic() ? known : await this.#usage(memory);
    const limits = this.#limits;
    if (ofMemory >= limits.ofMemory)
      throw errors.quota(`The memory ${memory.id} holds ${ofMemory} bytes, and may hold ${limits.ofMemory}.`, {
        remedy: 'Delete events or records, or raise quotas.bytesPerMemory.',
      });
    if (ofAccount >= limits.ofAccount)
      throw errors.quota(
        `The memories of the account hold ${ofAccount} bytes together, and may hold ${limits.ofAccount}.`,
        { remedy: 'Delete memories, events or records, or raise quotas.memoryBytesPerAccount.' },
      );
  }

  async #usage({ id, accountId }: Memory): Promise<Usage> {
    const [row] = await this.#database.query<{ own: number | null; everything: number | null }>(
      `SELECT (sum(u.bytes) FILTER (WHERE u.memory_id = $1))::bigint AS own, sum(u.bytes)::bigint AS everything
       FROM memory_usage u JOIN resources r ON r.kind = 'memory' AND r.id = u.memory_id WHERE r.account_id = $2`,
      [id, accountId],
    );
    const usage = {
      ofMemory: row?.own ?? 0,
      ofAccount: row?.everything ?? 0,
      until: this.#clock.monotonic() + BELIEVED_MS,
    };
    if (this.#believed.size >= MAX_BELIEVED) this.#believed.clear();
    this.#believed.set(id, usage);
    return usage;
  }
}
