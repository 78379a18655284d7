import pg from 'pg';
import type { RunResult, SqlDriver, SqlRunner } from './driver.ts';

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

  const runnerOn = (client: pg.Pool | pg.PoolClient): SqlRunner => ({
    run: async (sql, params) => {
      const result = await client.query({ text: sql, values: params });
      return { rows: result.rows, affected: result.rowCount ?? 0 };
    },
    exec: async (sql) => {
      // `pg` takes a limit of its own per query; its types do not tell.
      const script: pg.QueryConfig & { query_timeout: number } = { text: sql, query_timeout: LONGEST_SCRIPT_MS };
      return merge(await client.query(script));
    },
  });

  return {
    kind: 'postgres',
    where: describeUrl(options.url),
    ...runnerOn(pool),
    begin: async () => {
      const client = await pool.connect();
      // While checked out a client's own `error` has no listener in the pool, and an unheard one would end the process.
      let broken: Error | undefined;
      const onError = (error: Error): void => {
        broken = error;
      };
      client.on('error', onError);
      const release = (error?: Error): void => {
        client.removeListener('error', onError);
        client.release(error ?? broken);
      };
      const finish = async (sql: string): Promise<void> => {
        try {
          await client.query(sql);
          release();
        } catch (error) {
          release(error instanceof Error ? error : new Error(String(error)));
          throw error;
        }
      };
      try {
        await client.query('BEGIN');
      } catch (error) {
        release(error instanceof Error ? error : new Error(String(error)));
        throw error;
      }
      return {
        ...runnerOn(client),
        commit: () => finish('COMMIT'),
        rollback: () => finish('ROLLBACK').catch(() => {}),
      };
    },
    close: () => pool.end(),
  };
}

/** A text of several statements gives several results; `pg`'s types know only one. */
function merge(result: pg.QueryResult | pg.QueryResult[]): RunResult {
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
