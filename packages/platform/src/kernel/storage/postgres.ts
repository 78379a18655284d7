import pg from 'pg';
import { CHANGE_NOTED } from './changes.ts';
import type { LineListener, RunResult, SqlDriver, SqlLine, SqlRunner } from './driver.ts';

export interface PostgresOptions {
  /** postgres://user:password@host:port/database */
  url: string;
  /** Connections of this server at most. */
  maxConnections: number;
  /** How long a statement may take, in milliseconds. */
  statementTimeoutMs: number;
  /** How long to wait for a connection, in milliseconds. */
  connectTimeoutMs: number;
  onFailure(error: Error): void;
}

/** A migration may rewrite a large table; it lifts the server's own limit, this bounds the wait. */
const LONGEST_SCRIPT_MS = 600_000;

const INT8 = 20;
const DATE = 1082;
const TIMESTAMP = 1114;

/** PostgreSQL behind the driver interface: a pool that opens new connections by itself when the server comes back. */
export function openPostgresDriver(options: PostgresOptions): SqlDriver {
  const pool = new pg.Pool({
    connectionString: options.url,
    max: options.maxConnections,
    connectionTimeoutMillis: options.connectTimeoutMs,
    statement_timeout: options.statementTimeoutMs,
    // The server ends a slow statement; this ends the wait when the server itself has gone silent.
    query_timeout: options.statementTimeoutMs + 5_000,
    idle_in_transaction_session_timeout: options.statementTimeoutMs,
    keepAlive: true,
    application_name: 'agentplatform',
    types: { getTypeParser },
  });
  pool.on('error', options.onFailure);

  /** While checked out a client's own `error` has no listener in the pool, and an unheard one would end the process. */
  const checkOut = async (): Promise<{ client: pg.PoolClient; release(error?: unknown): void }> => {
    const client = await pool.connect();
    let broken: Error | undefined;
    const onError = (error: Error): void => {
      broken = error;
    };
    client.on('error', onError);
    return {
      client,
      release: (error) => {
        client.removeListener('error', onError);
        client.release(error === undefined ? broken : asError(error));
      },
    };
  };

  const once = async <T>(work: (runner: SqlRunner) => Promise<T>): Promise<T> => {
    const { client, release } = await checkOut();
    try {
      const result = await work(runnerOn(client));
      release();
      return result;
    } catch (error) {
      release(await undone(client, error));
      throw error;
    }
  };

  return {
    kind: 'postgres',
    where: describeUrl(options.url),
    run: (sql, params) => once((runner) => runner.run(sql, params)),
    exec: (sql) => once((runner) => runner.exec(sql)),
    begin: async () => {
      const { client, release } = await checkOut();
      const finish = async (sql: string): Promise<void> => {
        try {
          await client.query(sql);
          release();
        } catch (error) {
          release(await undone(client, error));
          throw error;
        }
      };
      try {
        await client.query('BEGIN');
      } catch (error) {
        release(asError(error));
        throw error;
      }
      return {
        ...runnerOn(client),
        commit: () => finish('COMMIT'),
        rollback: () => finish('ROLLBACK').catch(() => {}),
      };
    },
    listen: (channel, listener) => openLine(options.url, channel, listener),
    close: () => pool.end(),
  };
}

/** Longest wait on the line that hears of changes, which answers at once or is of no use, in ms. */
const LINE_MS = 2_000;

async function openLine(url: string, channel: string, { heard, lost }: LineListener): Promise<SqlLine> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: LINE_MS,
    statement_timeout: LINE_MS,
    query_timeout: LINE_MS,
    keepAlive: true,
    application_name: 'agentplatform changes',
    types: { getTypeParser },
  });
  let over = true;
  const end = (): void => {
    if (over) return;
    over = true;
    lost();
  };
  const close = (): void => {
    over = true;
    // Whatever it says: it is of no more use.
    client.end().catch(() => undefined);
  };
  client.on('error', end);
  client.on('end', end);
  client.on('notification', heard);
  try {
    await client.connect();
    await client.query(`LISTEN ${channel}`);
    over = false;
  } catch (error) {
    close();
    throw error;
  }
  return { run: (sql, params) => runnerOn(client).run(sql, params), close };
}

function runnerOn(client: pg.ClientBase): SqlRunner {
  const ask = async (query: pg.QueryConfig): Promise<RunResult> => {
    let noted = false;
    const onNotice = ({ code }: { code?: string | undefined }): void => {
      noted ||= code === CHANGE_NOTED;
    };
    client.on('notice', onNotice);
    try {
      const { rows, affected } = merge(await client.query(query));
      return { rows, affected, noted };
    } finally {
      client.removeListener('notice', onNotice);
    }
  };
  return {
    run: (text, values) => ask({ text, values }),
    exec: (text) => {
      // `pg` takes a limit of its own per query; its types do not tell.
      const script: pg.QueryConfig & { query_timeout: number } = { text, query_timeout: LONGEST_SCRIPT_MS };
      return ask(script);
    },
  };
}

/**
 * Waits until what failed is undone. The server tells of an error first and rolls back afterwards, and until then a look past locked rows
 * (SKIP LOCKED) passes those of the failed statement. Gives why the connection is of no more use, if so.
 */
async function undone(client: pg.ClientBase, error: unknown): Promise<Error | undefined> {
  if (!(error instanceof pg.DatabaseError)) return asError(error);
  // Also ends the transaction that a text of several statements left open; without one it does nothing.
  return client.query('ROLLBACK').then(() => undefined, asError);
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** A text of several statements gives several results; `pg`'s types know only one. */
function merge(result: pg.QueryResult | pg.QueryResult[]): Omit<RunResult, 'noted'> {
  const all = Array.isArray(result) ? result : [result];
  return { rows: all.flatMap((one) => one.rows), affected: all.reduce((sum, one) => sum + (one.rowCount ?? 0), 0) };
}

/** As the embedded driver gives them: bigint as a number while it is exact, date and timestamp as text. */
function getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === INT8) return parseInt8;
  if (oid === DATE || oid === TIMESTAMP) return (value) => value;
  return format === 'binary' ? pg.types.getTypeParser(oid, 'binary') : pg.types.getTypeParser(oid, 'text');
}

function parseInt8(value: string): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : BigInt(value);
}

function describeUrl(url: string): string {
  try {
    const { hostname, port, pathname } = new URL(url);
    return `PostgreSQL at ${hostname}:${port || 5432}${pathname}`;
  } catch {
    throw new Error('the database url must look like postgres://user:password@host:5432/database');
  }
}
