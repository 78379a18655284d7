import type { Logger } from 'pino';
import { type Clock, sleep } from '../clock.ts';
import type { Executor } from './database.ts';

/** Something that is kept for a while and then forgotten. */
export interface RetentionRule {
  /** What it is about, for the log: `audit rows`. */
  name: string;
  /** How long it is kept, in milliseconds. */
  keepMs: number;
  /** Forgets at most `limit` things from before `before` (milliseconds since the epoch); how many it was. */
  forget(before: number, limit: number): Promise<number>;
}

export interface RetentionDeps {
  rules: readonly RetentionRule[];
  clock: Clock;
  log: Logger;
}

const ROUND_MS = 3_600_000;
/** A batch is one short statement, so that nobody waits for it. */
const BATCH = 1000;
/** Least pause between two batches. */
const PAUSE_MS = 20;

/**
 * Forgets what has been kept long enough, in batches, every hour. Between two batches it rests as long as the last one took, so
 * that it never has more than half of the database. What is left to forget is told by the tables: a crash only makes it later.
 */
export class Retention {
  readonly #deps: RetentionDeps;
  readonly #stopping = new AbortController();
  #cancel: () => void = () => undefined;
  #working: Promise<void> = Promise.resolve();

  constructor(deps: RetentionDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#arm(0);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the server is stopping'));
    this.#cancel();
    await this.#working;
  }

  /** Applies every rule once, to the end; a rule that fails is tried again in the next round. Never rejects. */
  async round(): Promise<void> {
    const { rules, log } = this.#deps;
    for (const rule of rules) {
      try {
        const count = await this.#apply(rule);
        if (count > 0) log.info({ what: rule.name, count }, 'forgot what was kept long enough');
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        log.warn(
          { err: error, what: rule.name },
          'what was kept long enough could not be forgotten; it is tried again',
        );
      }
    }
  }

  async #apply(rule: RetentionRule): Promise<number> {
    const { clock } = this.#deps;
    const { signal } = this.#stopping;
    const before = clock.now() - rule.keepMs;
    for (let forgotten = 0; ; ) {
      signal.throwIfAborted();
      const began = clock.monotonic();
      const count = await rule.forget(before, BATCH);
      forgotten += count;
      if (count < BATCH) return forgotten;
      await sleep(clock, Math.max(PAUSE_MS, clock.monotonic() - began), signal);
    }
  }

  #arm(ms: number): void {
    if (this.#stopping.signal.aborted) return;
    this.#cancel = this.#deps.clock.after(ms, () => {
      this.#working = this.#work();
    });
  }

  async #work(): Promise<void> {
    await this.round();
    this.#arm(ROUND_MS);
  }
}

/** Deletes rows for a rule: those of `table` whose `column`, milliseconds since the epoch, is before the rule's moment, and of which the condition `only` holds. */
export function forgetRows(database: Executor, table: string, column: string, only = 'true'): RetentionRule['forget'] {
  return (before, limit) =>
    database.execute(
      `DELETE FROM ${table} WHERE ctid IN (SELECT ctid FROM ${table} WHERE ${column} < $1 AND ${only} LIMIT ${limit})`,
      [Math.floor(before)],
    );
}
