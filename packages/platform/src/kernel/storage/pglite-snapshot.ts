import { hash } from 'node:crypto';
import { constants, copyFileSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import type { PGlite } from '@electric-sql/pglite';
import type { Executor } from './database.ts';
import { type Migration, migrate } from './migrations.ts';
import { openPglite } from './pglite-open.ts';

/** What a prepared database is made of and where it is kept. */
export interface PgliteSnapshot {
  cacheDir: string;
  /** Applied to it already. */
  migrations: readonly Migration[];
}

/**
 * Makes `directory` an empty embedded database if it is none yet, whole or not at all. With `cacheDir` by copying a
 * prepared one: making it takes seconds, copying tenths. The prepared one is keyed by what it was made of, and is made
 * when absent.
 */
export async function ensurePgliteDirectory(directory: string, prepared?: PgliteSnapshot): Promise<void> {
  if (existsSync(join(directory, 'PG_VERSION'))) return;
  const snapshot = prepared && (await preparePgliteSnapshot(prepared));
  await mkdir(dirname(directory), { recursive: true });
  await removeUnfinished(directory);
  const unfinished = await mkdtemp(`${directory}.new-`);
  try {
    if (snapshot) copyInto(snapshot, unfinished);
    else await create(unfinished, []);
    await rename(unfinished, directory);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
}

/**
 * Copies files and folders into a folder that is there. In one go, because nothing is served yet: `cp` of Node takes several times the
 * processor time for the 1,200 files of a database.
 */
function copyInto(from: string, to: string): void {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) {
      mkdirSync(target);
      copyInto(source, target);
    } else copyFileSync(source, target, constants.COPYFILE_FICLONE);
  }
}

/** Returns the directory of the prepared empty database, making it first when absent (one to three seconds). */
async function preparePgliteSnapshot({ cacheDir, migrations }: PgliteSnapshot): Promise<string> {
  const snapshot = join(cacheDir, await snapshotName(migrations));
  if (existsSync(join(snapshot, 'PG_VERSION'))) return snapshot;
  await mkdir(cacheDir, { recursive: true });
  const unfinished = await mkdtemp(`${snapshot}.new-`);
  try {
    await create(unfinished, migrations);
    await rename(unfinished, snapshot);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    // Another process finished first: its snapshot is as good.
    if (!existsSync(join(snapshot, 'PG_VERSION'))) throw error;
  }
  return snapshot;
}

/** What an earlier start left that was cut short; the lock on the data directory excludes that it is still at it. */
async function removeUnfinished(directory: string): Promise<void> {
  const prefix = `${basename(directory)}.new-`;
  for (const name of await readdir(dirname(directory))) {
    if (name.startsWith(prefix)) await rm(join(dirname(directory), name), { recursive: true, force: true });
  }
}

async function create(directory: string, migrations: readonly Migration[]): Promise<void> {
  // As its publisher has made it: PGlite would run two more instances of PostgreSQL to make it here, in twice the memory and four times as long.
  const { dataDir } = await import('@electric-sql/pglite-prepopulatedfs');
  const database = await openPglite(directory, { content: await dataDir(), sharedBuffers: 16 });
  await database.exec('CREATE EXTENSION vector');
  if (migrations.length > 0) {
    await database.transaction((tx) => migrate({ transaction: (work) => work(executorOn(tx)) }, migrations));
  }
  await database.close();
}

function executorOn(tx: Pick<PGlite, 'exec' | 'query'>): Executor {
  return {
    query: async <Row>(sql: string, params?: unknown[]) => (await tx.query<Row>(sql, params)).rows,
    execute: async (sql, params) => (await tx.query(sql, params)).affectedRows ?? 0,
    exec: async (sql) => (await tx.exec(sql)).flatMap((result) => result.rows),
  };
}

async function snapshotName(migrations: readonly Migration[]): Promise<string> {
  const engine = await versionOf('@electric-sql/pglite');
  const extension = await versionOf('@electric-sql/pglite-pgvector');
  const content = await versionOf('@electric-sql/pglite-prepopulatedfs');
  const made = hash('sha256', JSON.stringify([engine, extension, content, migrations])).slice(0, 16);
  return `pglite-${engine}-${made}`;
}

async function versionOf(name: string): Promise<string> {
  const entry = createRequire(import.meta.url).resolve(name);
  const manifest: unknown = JSON.parse(await readFile(join(dirname(entry), '..', 'package.json'), 'utf8'));
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) return String(manifest.version);
  throw new Error(`${name} has no version in its package.json`);
}
