import type { Clock } from '../clock.ts';
import { Timers } from '../timers.ts';
import type { SqlDriver, SqlSession } from './driver.ts';
import { DatabaseUnavailableError } from './errors.ts';
import { type PgliteEngine, startPgliteEngine } from './pglite-engine.ts';
import { ensurePgliteDirectory, type PgliteSnapshot } from './pglite-snapshot.ts';
import { Turnstile } from './turnstile.ts';

export interface PgliteOptions {
  /** The database's own directory. */
  directory: string;
  /** What a new database is a copy of, if of anything. */
  prepared: PgliteSnapshot | undefined;
  clock: Clock;
  /** How long one statement may take before the engine is restarted, in milliseconds. */
  statementTimeoutMs: number;
  /** How long a caller waits for its turn while a transaction is open, in milliseconds. */
  waitMs: number;
  onFailure(error: Error): void;
}

const MAX_WAITING = 10_000;
const REOPEN_PAUSE_MS = 500;

/**
 * The embedded database behind the driver interface. If its engine ends (PostgreSQL stops itself when it cannot write
 * its log) the statements under way fail, and the next one opens it again, which recovers from the log.
 */
export async function openPgliteDriver(options: PgliteOptions): Promise<SqlDriver> {
  const turnstile = new Turnstile({ clock: options.clock, limit: MAX_WAITING, waitMs: options.waitMs });
  await ensurePgliteDirectory(options.directory, options.prepared);
  const timers = new Timers(options.clock);
  let closed = false;
  let engine: Promise<PgliteEngine> | undefined = start();
  await engine;

  function start(): Promise<PgliteEngine> {
    const starting = startPgliteEngine(options);
    const fail = (error: Error): void => {
      if (!closed) options.onFailure(error);
    };
    const forget = (): void => {
      if (engine === starting) engine = undefined;
    };
    starting.then(
      async (started) => {
        fail(await started.failed);
        forget();
      },
      (error: Error) => {
        fail(error);
        // Calls that come at once get the same answer, instead of one costly attempt each.
        timers.after(REOPEN_PAUSE_MS, forget);
      },
    );
    return starting;
  }

  function current(): Promise<PgliteEngine> {
    if (closed) return Promise.reject(new DatabaseUnavailableError('the embedded database is closed'));
    engine ??= start();
    return engine;
  }

  const hold = (): Promise<PgliteEngine> => turnstile.hold(() => current());

  return {
    kind: 'pglite',
    where: `embedded, ${options.directory}`,
    run: (sql, params) =>
      turnstile.pass(async () => (await current()).send({ kind: 'run', sql, params: encode(params) })),
    exec: async (sql) => {
      // Alone: the text may hold BEGIN and COMMIT, and a failure between them leaves a transaction to roll back.
      const target = await hold();
      try {
        return await target.send({ kind: 'exec', sql });
      } catch (error) {
        await target.send({ kind: 'exec', sql: 'ROLLBACK' }).catch(() => {});
        throw error;
      } finally {
        turnstile.leave();
      }
    },
    begin: async () => sessionOn(await hold(), () => turnstile.leave()),
    close: async () => {
      closed = true;
      timers.close();
      const target = await engine?.catch(() => undefined);
      await target?.close();
    },
  };
}

/** BEGIN goes with the first statement: the way to the thread and back is a good part of what a statement costs. */
function sessionOn(engine: PgliteEngine, leave: () => void): SqlSession {
  let begun = false;
  const first = (): { begin?: boolean } => {
    const begin = !begun;
    begun = true;
    return begin ? { begin } : {};
  };
  const finish = async (sql: string): Promise<void> => {
    try {
      if (begun) await engine.send({ kind: 'exec', sql });
    } finally {
      leave();
    }
  };
  return {
    run: (sql, params) => engine.send({ kind: 'run', sql, params: encode(params), ...first() }),
    exec: (sql) => engine.send({ kind: 'exec', sql, ...first() }),
    commit: () => finish('COMMIT'),
    rollback: () => finish('ROLLBACK').catch(() => {}),
  };
}

/** `undefined` is NULL, as the `pg` driver has it. */
function encode(params: unknown[]): unknown[] {
  return params.map((param) => (param === undefined ? null : param));
}
