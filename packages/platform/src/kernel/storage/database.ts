import { join } from 'node:path';
import type { Logger } from 'pino';
import { type Clock, sleep, systemClock } from '../clock.ts';
import { type DirectoryLock, lockDirectory } from './directory-lock.ts';
import type { LineListener, RunResult, SqlDriver, SqlRunner } from './driver.ts';
import { DatabaseError, DatabaseUnavailableError } from './errors.ts';
import { mapDatabaseError } from './map-error.ts';
import type { Migration } from './migrations.ts';
import { openPgliteDriver } from './pglite.ts';
import { openPostgresDriver } from './postgres.ts';

/** Whatever statements can be run on: the database itself, or one transaction of it. */
export interface Executor {
  /** One statement with `$1` parameters; its rows. bigint comes as number, timestamptz as Date, numeric and date as text. */
  query<Row = Record<string, unknown>>(sql: string, params?: unknown[]): Promise<Row[]>;
  /** One statement with `$1` parameters; the number of rows it changed. */
  execute(sql: string, params?: unknown[]): Promise<number>;
  /** Any number of statements without parameters. */
  exec(sql: string): Promise<Record<string, unknown>[]>;
}

/**
 * The SQL database, embedded or PostgreSQL: same statements, same values, same errors (`errors.ts`). After a failure of
 * the database every later call tries again by itself.
 */
export interface Database extends Executor, AsyncDisposable {
  kind: 'pglite' | 'postgres';
  /** Whether pgvector is there; memory needs it, nothing else does. */
  vector: { available: true } | { available: false; reason: string; missing: string; remedy: string };
  /** Runs `work` in one transaction: committed when it returns, rolled back when it throws. Use only `tx` inside. */
  transaction<T>(work: (tx: Executor) => Promise<T>): Promise<T>;
  /** Whether a statement gets through within two seconds. Never throws. */
  health(): Promise<DatabaseHealth>;
  /** Has `run` awaited after each commit that noted a change, before its writer goes on. For the change feed alone. */
  whenNoted(run: () => Promise<void>): void;
  /** A connection of its own that hears what is notified on `channel`; absent where no other server can be. For the change feed alone. */
  listen?(channel: string, listener: LineListener): Promise<Line>;
  close(): Promise<void>;
}

/** A connection that listens, and reads. */
export interface Line extends Pick<Executor, 'query'> {
  close(): void;
}

export type DatabaseHealth = { ok: true; latencyMs: number } | { ok: false; reason: string };

export interface DatabaseOptions {
  /** The server's data directory; it is locked for this process. The embedded database lives in `db` below it. */
  dataDir: string;
  /** postgres://…; without it the embedded database is used. */
  url?: string;
  log: Logger;
  clock?: Clock;
  /** Where a prepared embedded database is kept for further data directories; without it each is made anew, in seconds. */
  cacheDir?: string;
  /** Applied to that prepared database already, so that `migrate` finds them done. */
  prepared?: readonly Migration[];
  /** Longest statement, in milliseconds. */
  statementTimeoutMs?: number;
  /** Longest wait for a connection (PostgreSQL) or a turn (embedded), in milliseconds. */
  waitMs?: number;
  /** How long to try to reach PostgreSQL at start, in milliseconds. */
  startTimeoutMs?: number;
  /** Connections to PostgreSQL at most. */
  maxConnections?: number;
}

const HEALTH_WAIT_MS = 2_000;
const START_RETRY_MS = 250;

/**
 * Opens the database. Throws `DirectoryInUseError` when another server has the data directory, and
 * `DatabaseUnavailableError` when PostgreSQL cannot be reached within `startTimeoutMs`.
 */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const lock = await lockDirectory(options.dataDir);
  try {
    const clock = options.clock ?? systemClock;
    const driver = await openDriver(options, clock);
    const database = databaseOn(driver, lock, clock);
    try {
      await reach(database, clock, options.startTimeoutMs ?? 10_000);
      database.vector = await enableVector(database);
    } catch (error) {
      await driver.close();
      throw error;
    }
    return database;
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function openDriver(options: DatabaseOptions, clock: Clock): Promise<SqlDriver> {
  const statementTimeoutMs = options.statementTimeoutMs ?? 60_000;
  const waitMs = options.waitMs ?? 30_000;
  const onFailure = (error: Error): void => options.log.warn({ err: error }, 'the database failed; it is tried again');
  if (options.url) {
    const maxConnections = options.maxConnections ?? 10;
    return openPostgresDriver({
      url: options.url,
      maxConnections,
      statementTimeoutMs,
      connectTimeoutMs: waitMs,
      onFailure,
    });
  }
  const directory = join(options.dataDir, 'db');
  const { cacheDir, prepared: migrations = [] } = options;
  const prepared = cacheDir === undefined ? undefined : { cacheDir, migrations };
  return openPgliteDriver({ directory, prepared, clock, statementTimeoutMs, waitMs, onFailure });
}

function databaseOn(driver: SqlDriver, lock: DirectoryLock, clock: Clock): Database {
  const fail = (error: unknown): never => {
    throw mapDatabaseError(error, driver.where);
  };
  const close = async (): Promise<void> => {
    await driver.close();
    lock.release();
  };
  let tell: () => Promise<void> = async () => undefined;
  const base = executorOn(driver, driver.where, () => tell());
  const { listen } = driver;
  return {
    ...base,
    kind: driver.kind,
    vector: { available: false, reason: 'not looked for yet', missing: '', remedy: '' },
    transaction: async (work) => {
      const session = await driver.begin().catch(fail);
      let noted = false;
      const onNoted = async (): Promise<void> => {
        noted = true;
      };
      const result = await work(executorOn(session, driver.where, onNoted)).catch(async (error: unknown) => {
        await session.rollback();
        throw error;
      });
      await session.commit().catch(fail);
      if (noted) await tell();
      return result;
    },
    health: async () => {
      const started = clock.monotonic();
      const late = Promise.withResolvers<never>();
      const cancel = clock.after(HEALTH_WAIT_MS, () => late.reject(new Error(`no answer within ${HEALTH_WAIT_MS} ms`)));
      try {
        await Promise.race([base.query('SELECT 1'), late.promise]);
        return { ok: true, latencyMs: clock.monotonic() - started };
      } catch (error) {
        return { ok: false, reason: error instanceof Error ? error.message : String(error) };
      } finally {
        cancel();
      }
    },
    whenNoted: (run) => {
      tell = run;
    },
    ...(listen && {
      listen: async (channel, listener) => {
        const line = await listen(channel, listener).catch(fail);
        const { query } = executorOn({ run: line.run, exec: driver.exec }, driver.where, async () => undefined);
        return { query, close: line.close };
      },
    }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function executorOn(runner: SqlRunner, where: string, onNoted: () => Promise<void>): Executor {
  const done = async (running: Promise<RunResult>): Promise<RunResult> => {
    const result = await running.catch((error: unknown) => {
      throw mapDatabaseError(error, where);
    });
    if (result.noted) await onNoted();
    return result;
  };
  return {
    // The caller names the row type of the statement it wrote; nothing here could check it.
    query: async <Row>(sql: string, params: unknown[] = []) => (await done(runner.run(sql, params))).rows as Row[],
    execute: async (sql, params = []) => (await done(runner.run(sql, params))).affected,
    exec: async (sql) => (await done(runner.exec(sql))).rows as Record<string, unknown>[],
  };
}

async function reach(database: Database, clock: Clock, timeoutMs: number): Promise<void> {
  const deadline = clock.monotonic() + timeoutMs;
  for (;;) {
    try {
      await database.query('SELECT 1');
      return;
    } catch (error) {
      if (!(error instanceof DatabaseUnavailableError) || clock.monotonic() > deadline) throw error;
      await sleep(clock, START_RETRY_MS);
    }
  }
}

const ABSENT = {
  missing: 'this PostgreSQL has no pgvector',
  remedy:
    'install it there (on Debian the package postgresql-<version>-pgvector), ' +
    'run CREATE EXTENSION vector in the database as a superuser, and start the platform again',
};
const FORBIDDEN = {
  missing: 'pgvector is not enabled in this database, and the platform may not do it',
  remedy: 'run CREATE EXTENSION vector in the database as a superuser, and start the platform again',
};
const INSUFFICIENT_PRIVILEGE = '42501';

function isForbidden(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === INSUFFICIENT_PRIVILEGE;
}

async function enableVector(database: Database): Promise<Database['vector']> {
  try {
    await database.exec('CREATE EXTENSION IF NOT EXISTS vector');
    return { available: true };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { available: false, reason, ...(isForbidden(error) ? FORBIDDEN : ABSENT) };
  }
}
