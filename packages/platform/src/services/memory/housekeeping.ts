import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import { type Database, keepStatistics } from '../../kernel/storage/index.ts';

export interface HousekeepingDeps {
  database: Database;
  clock: Clock;
  log: Logger;
}

const ROUND_MS = 60_000;
const ROWS_AT_ONCE = 1000;

/**
 * Deletes events and records that have expired and what deleted memories held, a little at a time, and keeps the statistics of the tables. What is left to delete is told by
 * the tables themselves, so a crash only makes it later; nothing of it can be read meanwhile.
 */
export class Housekeeping {
  readonly #deps: HousekeepingDeps;
  #cancel: () => void = () => undefined;
  #working: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: HousekeepingDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#arm(0);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#working;
  }

  /** One round; whether there is more to do at once. */
  async round(): Promise<boolean> {
    const { database, clock } = this.#deps;
    const now = new Date(clock.now());
    let more = false;
    for (const table of ['memory_events', 'memory_records']) {
      const expired = await database.execute(
        `DELETE FROM ${table} WHERE ctid IN (SELECT ctid FROM ${table} WHERE expires_at <= $1 LIMIT ${ROWS_AT_ONCE})`,
        [now],
      );
      more ||= expired === ROWS_AT_ONCE;
    }
    const [purge] = await database.query<{ memory_id: string }>('SELECT memory_id FROM memory_purges LIMIT 1');
    if (!purge) return more;
    let deleted = 0;
    for (const table of [
      'memory_events',
      'memory_records',
      'memory_sessions',
      'memory_branches',
      'memory_extraction_jobs',
      'memory_model_usage',
    ]) {
      deleted += await database.execute(
        `DELETE FROM ${table} WHERE ctid IN (SELECT ctid FROM ${table} WHERE memory_id = $1 LIMIT ${ROWS_AT_ONCE})`,
        [purge.memory_id],
      );
    }
    if (deleted === 0)
      for (const table of ['memory_usage', 'memory_purges'])
        await database.execute(`DELETE FROM ${table} WHERE memory_id = $1`, [purge.memory_id]);
    return true;
  }

  #arm(ms: number): void {
    if (this.#stopped) return;
    this.#cancel = this.#deps.clock.after(ms, () => {
      this.#working = this.#work();
    });
  }

  async #work(): Promise<void> {
    try {
      const more = await this.round();
      if (!more) await keepStatistics(this.#deps.database, ['memory_']);
      this.#arm(more ? 10 : ROUND_MS);
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'what has expired could not be deleted; it is tried again');
      this.#arm(ROUND_MS);
    }
  }
}
