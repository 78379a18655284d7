import { DrizzleQueryError } from 'drizzle-orm/errors';
import { PgDialect } from 'drizzle-orm/pg-core';
import { PgRemoteDatabase, PgRemoteSession, type PreparedQuery } from 'drizzle-orm/pg-proxy';

/** The query builder, one type whatever database is under it. */
export type Drizzle = PgRemoteDatabase;

/** Runs one statement; `rows` are arrays. */
export type RunArrays = (sql: string, params: unknown[]) => Promise<unknown[]>;
/** Runs one statement; `rows` are objects. */
export type RunObjects = (sql: string, params: unknown[]) => Promise<unknown[]>;

/** Drizzle on any runner. Errors arrive as the runner threw them, never in Drizzle's wrapper that prints every parameter. */
export function drizzleOn(runArrays: RunArrays, runObjects: RunObjects): Drizzle {
  const session = new PlainErrorSession(
    async (sql, params, method) => ({ rows: await (method === 'all' ? runArrays : runObjects)(sql, params) }),
    new PgDialect(),
    undefined,
  );
  return new PgRemoteDatabase(new PgDialect(), session, undefined);
}

class PlainErrorSession extends PgRemoteSession<Record<string, never>, Record<string, never>> {
  // biome-ignore lint/suspicious/noExplicitAny: the signature is Drizzle's own and generic in a type it does not export.
  override prepareQuery(...args: Parameters<PgRemoteSession<any, any>['prepareQuery']>): PreparedQuery<any> {
    const prepared = super.prepareQuery(...args);
    const execute = prepared.execute.bind(prepared);
    prepared.execute = async (values) => {
      try {
        return await execute(values);
      } catch (error) {
        throw error instanceof DrizzleQueryError && error.cause ? error.cause : error;
      }
    };
    return prepared;
  }
}
