import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fdatasyncSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { lockDirectory } from './directory-lock.ts';
import { DatabaseBusyError, DatabaseUnavailableError, DirectoryInUseError, StorageFullError } from './errors.ts';
import { migrate } from './migrations.ts';
import { openPglite } from './pglite-open.ts';
import { ensurePgliteDirectory } from './pglite-snapshot.ts';
import { EMBEDDED_CACHE, silent, temporaryPglite } from './testing/databases.ts';
import { startPostgres } from './testing/postgres.ts';

const cleanups: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'agentplatform-faults-'));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** A server in a process of its own that inserts until it is killed. */
async function holdDatabase(dataDir: string) {
  const child = spawn(
    process.execPath,
    [join(import.meta.dirname, 'testing/hold-database.ts'), dataDir, EMBEDDED_CACHE],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const exited = once(child, 'exit');
  cleanups.push(() => child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout });
  let acknowledged = -1;
  const opened = Promise.withResolvers<void>();
  lines.on('line', (line) => {
    if (line === 'open') opened.resolve();
    else acknowledged = Number(line);
  });
  await opened.promise;
  return {
    pid: child.pid,
    kill: async () => {
      child.kill('SIGKILL');
      await exited;
      return acknowledged;
    },
  };
}

describe('the lock on the data directory', () => {
  test('a second server is refused with the pid of the first, and welcome after it was killed', async () => {
    const dataDir = await temporaryDirectory();
    const holder = await holdDatabase(dataDir);
    const refused = temporaryPglite({ dataDir });
    await expect(refused).rejects.toBeInstanceOf(DirectoryInUseError);
    await expect(refused).rejects.toMatchObject({
      pid: holder.pid,
      message: expect.stringContaining(`process ${holder.pid}`),
    });
    await holder.kill();
    const { database, dispose } = await temporaryPglite({ dataDir });
    cleanups.push(dispose);
    expect(await database.health()).toMatchObject({ ok: true });
  });

  test('it is exclusive within a process too, and free after release', async () => {
    const directory = await temporaryDirectory();
    const lock = await lockDirectory(directory);
    await expect(lockDirectory(directory)).rejects.toMatchObject({ pid: process.pid });
    lock.release();
    lock.release();
    (await lockDirectory(directory)).release();
  });
});

describe('the embedded database', () => {
  test('keeps every acknowledged commit through kill -9', async () => {
    const dataDir = await temporaryDirectory();
    for (const ms of [40, 180]) {
      const holder = await holdDatabase(dataDir);
      await sleep(ms);
      const acknowledged = await holder.kill();
      const { database } = await temporaryPglite({ dataDir });
      const [row] = await database.query<{ count: number; max: number }>('SELECT count(*), max(n)::int FROM kept');
      // No row at all: it was killed before its first commit.
      const last = row?.max ?? -1;
      expect(last).toBeGreaterThanOrEqual(acknowledged);
      expect(row?.count).toBe(last + 1);
      await database.close();
    }
  });

  test('is made anew when nothing was prepared, and a start that was cut short leaves no half of it', async () => {
    const dataDir = await temporaryDirectory();
    await mkdir(join(dataDir, 'db.new-halfmade'));
    const { database, dispose } = await temporaryPglite({ dataDir, cacheDir: undefined });
    cleanups.push(dispose);
    expect(database.vector).toEqual({ available: true });
    expect((await readdir(dataDir)).sort()).toEqual(['db', 'server.lock', 'server.pid']);
  });

  test('is a copy of what was prepared, migrations and all; other migrations are another one', async () => {
    const cacheDir = await temporaryDirectory();
    const one = [{ id: 'test/0001', sql: 'CREATE TABLE things (name text)' }];
    const two = [...one, { id: 'test/0002', sql: "INSERT INTO things VALUES ('from the copy')" }];
    for (const [prepared, made, left] of [
      [one, 1, ['test/0002']],
      [two, 2, []],
      [two, 2, []],
    ] as const) {
      const { database, dispose } = await temporaryPglite({ cacheDir, prepared });
      cleanups.push(dispose);
      expect(await migrate(database, two, silent)).toEqual(left);
      expect(await database.query('SELECT name FROM things')).toEqual([{ name: 'from the copy' }]);
      expect(await readdir(cacheDir)).toHaveLength(made);
    }
  });

  test('has each commit on the disk before it is acknowledged, and fails it when the disk does', async () => {
    const directory = join(await temporaryDirectory(), 'db');
    await ensurePgliteDirectory(directory, { cacheDir: EMBEDDED_CACHE, migrations: [] });
    let synced = 0;
    let broken = false;
    const database = await openPglite(directory, {
      syncFile(descriptor) {
        if (broken) throw new Error('EIO');
        fdatasyncSync(descriptor);
        synced++;
      },
    });
    await database.exec('CREATE TABLE t (n int)');
    const before = synced;
    for (let n = 0; n < 5; n++) await database.query('INSERT INTO t VALUES ($1)', [n]);
    expect(synced - before).toBeGreaterThanOrEqual(5);
    const reads = synced;
    await database.query('SELECT * FROM t');
    expect(synced).toBe(reads);
    broken = true;
    await expect(database.query('INSERT INTO t VALUES (9)')).rejects.toThrow();
  });

  test('a statement outside its transaction is told so instead of waiting for ever', async () => {
    const { database, dispose } = await temporaryPglite({ waitMs: 100 });
    cleanups.push(dispose);
    const work = database.transaction(() => database.query('SELECT 1'));
    await expect(work).rejects.toBeInstanceOf(DatabaseBusyError);
    await expect(work).rejects.toThrow(/must use the handle of that transaction/);
    expect(await database.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  test('a statement that takes too long is ended, and the database works again', async () => {
    const { database, dispose } = await temporaryPglite({ statementTimeoutMs: 1_000 });
    cleanups.push(dispose);
    const endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT (i + 1) % 1000 FROM n) SELECT count(*) FROM n';
    await expect(database.query(endless)).rejects.toBeInstanceOf(DatabaseBusyError);
    expect(await database.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  test('says that it is closed once it is', async () => {
    const { database, dispose } = await temporaryPglite();
    await dispose();
    await expect(database.query('SELECT 1')).rejects.toBeInstanceOf(DatabaseUnavailableError);
    expect(await database.health()).toMatchObject({ ok: false });
  });

  test('a full disk is named, loses nothing acknowledged, and needs no hand once there is room', async (context) => {
    if (userInfo().uid !== 0) return context.skip('needs root, to mount a small file system');
    const dataDir = await temporaryDirectory();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=90m', 'agentplatform-full', dataDir]);
    cleanups.push(() => execFileSync('umount', ['-l', dataDir]));
    const { database } = await temporaryPglite({ dataDir });
    cleanups.push(() => database.close());
    // Updates and vacuum in turn take up no new pages: what runs out is the write-ahead log, the worst case.
    const rewrite = async (): Promise<void> => {
      await database.query('UPDATE filled SET round = round + 1, filler = repeat(md5(random()::text), 30)');
      acknowledged++;
      await database.query('VACUUM filled');
    };
    let acknowledged = 0;
    await database.exec(`CREATE TABLE filled (n int PRIMARY KEY, round int, filler text);
      INSERT INTO filled SELECT n, 0, repeat('x', 900) FROM generate_series(1, 2000) AS n`);
    await rewrite();
    const ballast = join(dataDir, 'ballast');
    const fill = writeFile(ballast, Buffer.alloc(90 << 20));
    await expect(fill).rejects.toMatchObject({ code: 'ENOSPC' });
    const failures: unknown[] = [];
    for (let n = 0; n < 50 && failures.length < 2; n++) await rewrite().catch((error: unknown) => failures.push(error));
    expect(failures).toEqual([expect.any(StorageFullError), expect.any(StorageFullError)]);
    await rm(ballast);
    await vi.waitFor(rewrite, { timeout: 10_000, interval: 100 });
    const rows = await database.query<{ round: number; count: number }>(
      'SELECT round, count(*) FROM filled GROUP BY round',
    );
    // A failed update may have been written after all; an acknowledged one must have been.
    expect(rows).toEqual([{ round: expect.any(Number), count: 2000 }]);
    expect(rows[0]?.round).toBeGreaterThanOrEqual(acknowledged);
  });
});

describe('PostgreSQL', () => {
  test('its crash is named, and work goes on when it is back', async () => {
    await using server = await startPostgres();
    const { database, dispose } = await temporaryPglite({ url: await server.createDatabase(), waitMs: 3_000 });
    cleanups.push(dispose);
    await database.exec('CREATE TABLE kept (n int)');
    const interrupted = database.transaction(async (tx) => {
      await tx.query('INSERT INTO kept VALUES (1)');
      await server.kill();
      await tx.query('INSERT INTO kept VALUES (2)');
    });
    await expect(interrupted).rejects.toBeInstanceOf(DatabaseUnavailableError);
    const refused = database.query('SELECT 1');
    await expect(refused).rejects.toBeInstanceOf(DatabaseUnavailableError);
    await expect(refused).rejects.toThrow(/^the database \(PostgreSQL at 127\.0\.0\.1:\d+\/test_1\) is not reachable/);
    expect(await database.health()).toMatchObject({ ok: false, reason: expect.stringContaining('not reachable') });
    await server.start();
    await database.query('INSERT INTO kept VALUES (3)');
    expect(await database.query('SELECT n FROM kept')).toEqual([{ n: 3 }]);
    expect(await database.health()).toMatchObject({ ok: true });
  });

  test('a start without it fails in time, and no password is shown', async () => {
    const start = temporaryPglite({ url: 'postgres://me:hunter2@127.0.0.1:1/nothing', startTimeoutMs: 300 });
    await expect(start).rejects.toBeInstanceOf(DatabaseUnavailableError);
    await expect(start).rejects.not.toThrow(/hunter2/);
    await expect(temporaryPglite({ url: 'postgres://[bad' })).rejects.toThrow(/must look like postgres:\/\//);
  });
});
