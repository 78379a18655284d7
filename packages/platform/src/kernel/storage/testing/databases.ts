import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import pino from 'pino';
import { afterAll, beforeAll, describe } from 'vitest';
import { type Database, type DatabaseOptions, openDatabase } from '../database.ts';
import { type Migration, migrate } from '../migrations.ts';
import { startPostgres, type TestPostgres } from './postgres.ts';

export const silent = pino({ level: 'silent' });

/** The prepared embedded database is made once per checkout. */
export const EMBEDDED_CACHE = resolve(import.meta.dirname, '../../../../../../.cache/pglite');

/** An embedded database in a directory of its own, removed at `dispose`. */
export async function temporaryPglite(options: Partial<DatabaseOptions> = {}): Promise<TemporaryDatabase> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'agentplatform-db-')));
  const opening = openDatabase({ log: silent, cacheDir: EMBEDDED_CACHE, ...options, dataDir });
  const database = await opening.catch(async (error: unknown) => {
    if (!options.dataDir) await rm(dataDir, { recursive: true, force: true });
    throw error;
  });
  const dispose = async (): Promise<void> => {
    await database.close();
    await rm(dataDir, { recursive: true, force: true });
  };
  return { database, dataDir, dispose };
}

export interface TemporaryDatabase {
  database: Database;
  dataDir: string;
  dispose(): Promise<void>;
}

/** Declares the same tests for the embedded database and for a real PostgreSQL, each with `migrations` applied. */
export function describeDatabases(
  name: string,
  migrations: readonly Migration[],
  define: (database: () => Database, kind: Database['kind']) => void,
): void {
  for (const kind of ['pglite', 'postgres'] as const) {
    describe(`${name} on ${kind}`, () => {
      let open: TemporaryDatabase | undefined;
      let server: TestPostgres | undefined;

      beforeAll(async () => {
        if (kind === 'postgres') server = await startPostgres();
        open = await temporaryPglite(server ? { url: await server.createDatabase() } : {});
        await migrate(open.database, migrations, silent);
      });

      afterAll(async () => {
        await open?.dispose();
        await server?.stop();
      });

      define(() => {
        if (!open) throw new Error('the database is not open yet');
        return open.database;
      }, kind);
    });
  }
}
