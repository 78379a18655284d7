import { AsyncLocalStorage } from 'node:async_hooks';
import type { Database } from '../storage/index.ts';
import type { Span } from './span.ts';

/** What one request has waited for, so far; times in ms. */
interface Tally {
  readonly span: Span;
  /** From the first statement to the last; absent before there was one. */
  wait?: Span;
  statements: number;
  /** Statements under way, and since when there are any. */
  underWay: number;
  since: number;
  waited: number;
  last: number;
}

/**
 * How long each request waits for the database, in all: which statement belongs to which request nobody hands on, so this alone is ambient, and only
 * where traces are recorded. Statements at once count once; a transaction counts whole.
 */
export class DatabaseWait {
  readonly #current = new AsyncLocalStorage<Tally>();
  readonly #now: () => number;

  /** `now` as of `SpanKeeper`. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Does `run`; what it waits becomes one part of `span`. */
  async during<Result>(span: Span, run: () => Promise<Result>): Promise<Result> {
    const tally: Tally = { span, statements: 0, underWay: 0, since: 0, waited: 0, last: 0 };
    try {
      return await this.#current.run(tally, run);
    } finally {
      this.#close(tally);
    }
  }

  watch(database: Database): Database {
    return {
      ...database,
      query: (sql, params) => this.#wait(() => database.query(sql, params)),
      execute: (sql, params) => this.#wait(() => database.execute(sql, params)),
      exec: (sql) => this.#wait(() => database.exec(sql)),
      transaction: (work) => this.#wait(() => database.transaction(work)),
    };
  }

  #wait<Result>(run: () => Promise<Result>): Promise<Result> {
    const tally = this.#current.getStore();
    if (!tally) return run();
    tally.wait ??= tally.span.child('database', 'client');
    tally.statements += 1;
    if (tally.underWay++ === 0) tally.since = this.#now();
    return run().finally(() => {
      tally.last = this.#now();
      if (--tally.underWay === 0) tally.waited += tally.last - tally.since;
    });
  }

  /** What goes on after its request is over is nobody's wait. */
  #close({ wait, statements, underWay, since, waited, last }: Tally): void {
    if (!wait) return;
    const now = this.#now();
    const all = underWay > 0 ? waited + now - since : waited;
    wait.set('db.system.name', 'postgresql');
    wait.set('agentplatform.db.statements', statements);
    wait.set('agentplatform.db.wait_ms', Math.round(all * 1000) / 1000);
    wait.end(underWay > 0 ? now : last);
  }
}
