import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../clock.ts';
import { FakeClock } from '../fake-clock.ts';
import { type Database, DatabaseUnavailableError, migrate } from '../storage/index.ts';
import { describeDatabases, silent, temporaryPglite } from '../storage/testing/databases.ts';
import { startPostgres } from '../storage/testing/postgres.ts';
import { JournalFullError, RecordTooLargeError } from './errors.ts';
import { createJournal, type JournalOptions } from './journal.ts';
import { listSegments } from './segment.ts';
import { journalMigrations } from './tables.ts';
import { numberMigrations, numberSink } from './testing/number-sink.ts';

interface Kinds {
  number: number;
}

const cleanups: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'agentplatform-journal-'));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

describeDatabases('journal', [...journalMigrations, ...numberMigrations], (database) => {
  const openJournal = async (dir: string, more: Partial<JournalOptions<Kinds>> = {}) => {
    const sinks = { number: numberSink };
    const options = { dir, database: database(), sinks, clock: systemClock, log: silent, drainDelayMs: 1, ...more };
    const journal = await createJournal<Kinds>(options);
    cleanups.push(() => journal.close(1_000));
    return journal;
  };
  const stored = async (): Promise<number[]> => {
    const rows = await database().query<{ n: number }>('SELECT n FROM numbers ORDER BY seq');
    return rows.map((row) => row.n);
  };
  const range = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n);
  afterEach(() => database().query('DELETE FROM numbers'));

  test('records reach the database once and in order, and their segments go', async () => {
    const dir = await temporaryDirectory();
    const journal = await openJournal(dir, { segmentBytes: 1_000, maxBatch: 7 });
    for (const n of range(0, 100)) await journal.append('number', n);
    await Promise.all(range(100, 200).map((n) => journal.append('number', n)));
    for (const n of range(200, 300)) expect(journal.record('number', n)).toBe(true);
    await journal.flush();
    expect(await stored()).toEqual(range(0, 300));
    expect(journal.stats()).toMatchObject({
      durableSeq: 300,
      appliedSeq: 300,
      pendingBytes: 0,
      dropped: 0,
      failure: undefined,
    });
    await vi.waitFor(async () => expect(await listSegments(dir)).toHaveLength(1));
  });

  test('what an earlier life left is applied at the next start, and numbers go on', async () => {
    const dir = await temporaryDirectory();
    const down: Database = { ...database(), transaction: failingAfter(1, database()) };
    const first = await openJournal(dir, { database: down });
    for (const n of range(0, 20)) await first.append('number', n);
    await first.close(50);
    expect(await stored()).toEqual([]);
    const second = await openJournal(dir);
    await second.append('number', 20);
    await second.flush();
    await second.close();
    const third = await openJournal(dir);
    await third.append('number', 21);
    await third.flush();
    expect(await stored()).toEqual(range(0, 22));
  });

  test('a database that is away is waited for', async () => {
    const flaky: Database = { ...database(), transaction: failingAfter(1, database(), 3) };
    const journal = await openJournal(await temporaryDirectory(), { database: flaky });
    await journal.append('number', 1);
    await vi.waitFor(() => expect(journal.stats().failure).toMatch(/away/));
    await journal.append('number', 2);
    await journal.flush();
    expect(await stored()).toEqual([1, 2]);
    expect(journal.stats().failure).toBeUndefined();
  });

  test('a commit whose answer was lost is not applied again', async () => {
    let lose = true;
    const lossy: Database = {
      ...database(),
      transaction: async (work) => {
        const result = await database().transaction(work);
        if (result === undefined && lose) {
          lose = false;
          throw new DatabaseUnavailableError('the connection broke after COMMIT');
        }
        return result;
      },
    };
    const journal = await openJournal(await temporaryDirectory(), { database: lossy });
    for (const n of range(0, 5)) await journal.append('number', n);
    await journal.flush();
    expect(lose).toBe(false);
    expect(await stored()).toEqual(range(0, 5));
  });

  test('a record that the database refuses is set aside, and the others pass', async () => {
    const dir = await temporaryDirectory();
    const journal = await openJournal(dir);
    const huge = 2 ** 40;
    for (const n of [1, 2, huge, 3, 4]) journal.record('number', n);
    await journal.flush();
    expect(await stored()).toEqual([1, 2, 3, 4]);
    const refused = (await readFile(join(dir, 'refused.jsonl'), 'utf8')).trim().split('\n');
    expect(refused.map((line) => JSON.parse(line))).toEqual([
      { seq: 3, sink: 'number', json: String(huge), cause: expect.stringContaining('out of range') },
    ]);
  });

  test('two journals in one database do not take each other for done', async () => {
    const [a, b] = [await openJournal(await temporaryDirectory()), await openJournal(await temporaryDirectory())];
    for (const n of range(0, 5)) await a.append('number', n);
    await a.flush();
    await b.append('number', 100);
    await b.flush();
    expect((await stored()).sort((x, y) => x - y)).toEqual([0, 1, 2, 3, 4, 100]);
  });

  function failingAfter(allowed: number, real: Database, failures = Number.POSITIVE_INFINITY): Database['transaction'] {
    let calls = 0;
    return (work) => {
      calls++;
      if (calls > allowed && calls <= allowed + failures) return Promise.reject(new DatabaseUnavailableError('away'));
      return real.transaction(work);
    };
  }
});

describe('journal on the disk', () => {
  const openOn = async (dir: string, more: Partial<JournalOptions<Kinds>> = {}) => {
    const { database, dispose } = await temporaryPglite();
    cleanups.push(dispose);
    await migrate(database, [...journalMigrations, ...numberMigrations], silent);
    const options = {
      dir,
      database,
      sinks: { number: numberSink },
      clock: systemClock,
      log: silent,
      drainDelayMs: 1,
      ...more,
    };
    const journal = await createJournal<Kinds>(options);
    cleanups.push(() => journal.close(1_000));
    return { journal, database };
  };
  const numbersOf = async (database: Database) =>
    (await database.query<{ n: number }>('SELECT n FROM numbers ORDER BY seq')).map((row) => row.n);

  test('what nobody waits for is safe from a killed process long before it is synced', async () => {
    const dir = await temporaryDirectory();
    const { journal } = await openOn(dir, { lingerMs: 3_600_000 });
    for (const n of [1, 2, 3]) expect(journal.record('number', n)).toBe(true);
    // What the file system knows now is what the next start finds after `kill -9`.
    const copy = await temporaryDirectory();
    const seen = async () => {
      const [segment] = await listSegments(dir);
      const bytes = await readFile(segment?.path ?? '');
      await writeFile(join(copy, basename(segment?.path ?? '')), bytes);
      return bytes.toString('latin1').match(/number/g) ?? [];
    };
    await vi.waitFor(async () => expect(await seen()).toHaveLength(3));
    expect(journal.stats()).toMatchObject({ durableSeq: 0, appliedSeq: 0 });
    const next = await openOn(copy);
    await next.journal.flush();
    expect(await numbersOf(next.database)).toEqual([1, 2, 3]);
  });

  test('a torn end is cut off; whatever it looks like, the records before it stay', async () => {
    const tails = [
      Buffer.alloc(5),
      Buffer.alloc(5_000),
      Buffer.from('garbage that is no frame'),
      Buffer.from([9, 0, 0, 0, 1]),
    ];
    const { database, dispose } = await temporaryPglite();
    cleanups.push(dispose);
    await migrate(database, [...journalMigrations, ...numberMigrations], silent);
    for (const [n, tail] of tails.entries()) {
      const dir = await temporaryDirectory();
      const options = { dir, sinks: { number: numberSink }, clock: systemClock, log: silent, drainDelayMs: 1 };
      let calls = 0;
      const away: Database = {
        ...database,
        transaction: (work) =>
          calls++ === 0 ? database.transaction(work) : Promise.reject(new DatabaseUnavailableError('away')),
      };
      const first = await createJournal<Kinds>({ ...options, database: away });
      await first.append('number', n * 10);
      await first.append('number', n * 10 + 1);
      await first.close(20);
      const [segment] = await listSegments(dir);
      await appendFile(segment?.path ?? '', tail);
      const second = await createJournal<Kinds>({ ...options, database });
      await second.append('number', n * 10 + 2);
      await second.flush();
      await second.close();
    }
    const numbers = (await numbersOf(database)).sort((a, b) => a - b);
    expect(numbers).toEqual([0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32]);
  });

  test('damage in the middle is set aside, and later segments are still applied', async () => {
    const dir = await temporaryDirectory();
    const { journal, database } = await openOn(dir, { segmentBytes: 200, maxBatch: 1, drainDelayMs: 60_000 });
    for (let n = 0; n < 30; n++) await journal.append('number', n);
    await journal.close(20);
    const segments = await listSegments(dir);
    const [, second] = segments;
    const file = await open(second?.path ?? '', 'r+');
    await file.write(Buffer.from([255]), 0, 1, 40);
    await file.close();
    const options = { dir, database, sinks: { number: numberSink }, clock: systemClock, log: silent, drainDelayMs: 1 };
    const again = await createJournal<Kinds>(options);
    await again.append('number', 30);
    await again.flush();
    await again.close();
    const numbers = await numbersOf(database);
    expect(numbers).toContain(0);
    expect(numbers).toContain(30);
    expect(numbers.length).toBeLessThan(31);
    expect(numbers.length).toBeGreaterThan(20);
    expect(new Set(numbers).size).toBe(numbers.length);
    expect((await readdir(dir)).filter((name) => name.endsWith('.damaged'))).toHaveLength(1);
  });

  test('between full batches the drain rests, longer than it worked, unless somebody waits or room gets short', async () => {
    /** Each look at it finds 10 ms passed, so that a batch takes some time. */
    class WorkingClock extends FakeClock {
      #looks = 0;
      override monotonic(): number {
        this.#looks += 10;
        return super.monotonic() + this.#looks;
      }
    }
    const clock = new WorkingClock();
    const fill = async (more: Partial<JournalOptions<Kinds>>) => {
      const { journal } = await openOn(await temporaryDirectory(), { maxBatch: 5, drainDelayMs: 0, clock, ...more });
      await Promise.all(Array.from({ length: 30 }, (_, n) => journal.append('number', n)));
      await clock.advance(0);
      return journal;
    };
    const journal = await fill({});
    await vi.waitFor(() => expect(journal.stats().appliedSeq).toBe(5));
    await clock.advance(29);
    await sleep(50);
    expect(journal.stats().appliedSeq).toBe(5);
    await clock.advance(2);
    await vi.waitFor(() => expect(journal.stats().appliedSeq).toBe(10));
    await journal.flush();
    expect(journal.stats().appliedSeq).toBe(30);

    const crowded = await fill({ maxBytes: 2_000 });
    await vi.waitFor(() => expect(crowded.stats().appliedSeq).toBeGreaterThanOrEqual(10));
  });

  test('it takes no more than its share, and drops only what nobody waits for, counted', async () => {
    const { journal } = await openOn(await temporaryDirectory(), {
      maxBytes: 20_000,
      drainDelayMs: 60_000,
      retryMs: 20,
    });
    const fill = async () => {
      for (let n = 0; n < 1_000; n++) await journal.append('number', n);
    };
    journal.need();
    await expect(fill()).rejects.toBeInstanceOf(JournalFullError);
    expect(() => journal.need()).toThrow('wait for the database already');
    expect(journal.stats().bytes).toBeLessThan(30_000);
  });

  test('memory is bounded: record refuses, append waits', async () => {
    const { journal, database } = await openOn(await temporaryDirectory(), { maxPendingBytes: 2_000 });
    let taken = 0;
    while (journal.record('number', taken)) taken++;
    expect(taken).toBeLessThan(100);
    expect(journal.stats()).toMatchObject({ dropped: 1 });
    expect(() => journal.need()).toThrow('wait for the disk already');
    expect(journal.stats().pendingBytes).toBeLessThan(2_100);
    await Promise.all(Array.from({ length: 500 }, (_, n) => journal.append('number', 1_000 + n)));
    await journal.flush();
    expect(await numbersOf(database)).toHaveLength(taken + 500);
  });

  test('a record that is too large is refused and leaves the journal as it was', async () => {
    const { database, dispose } = await temporaryPglite();
    cleanups.push(dispose);
    await migrate(database, journalMigrations, silent);
    const texts: string[] = [];
    const sink = {
      parse: String,
      apply: async (_: unknown, records: readonly { data: string }[]) => void texts.push(...records.map((r) => r.data)),
    };
    const journal = await createJournal<{ text: string }>({
      dir: await temporaryDirectory(),
      database,
      sinks: { text: sink },
      clock: systemClock,
      log: silent,
    });
    await expect(journal.append('text', 'x'.repeat(1 << 20))).rejects.toBeInstanceOf(RecordTooLargeError);
    await journal.append('text', 'fits');
    await journal.flush();
    expect(texts).toEqual(['fits']);
    await journal.close();
  });

  test('a full disk is named to those who wait, and needs no hand once there is room', async (context) => {
    if (userInfo().uid !== 0) return context.skip('needs root, to mount a small file system');
    const dir = await temporaryDirectory();
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'agentplatform-full', dir]);
    cleanups.push(() => execFileSync('umount', ['-l', dir]));
    const { journal, database } = await openOn(join(dir, 'journal'), { retryMs: 20 });
    await journal.append('number', 1);
    await writeFile(join(dir, 'ballast'), Buffer.alloc(1 << 20)).catch(() => {});
    const failed: unknown[] = [];
    let last = 1;
    while (failed.length === 0)
      await journal.append('number', last + 1).then(
        () => last++,
        (error) => failed.push(error),
      );
    expect(failed[0]).toBeInstanceOf(JournalFullError);
    expect(String(failed[0])).toContain('its disk is full');
    expect(journal.record('number', 5_000)).toBe(true);
    await expect(journal.append('number', 6_000)).rejects.toBeInstanceOf(JournalFullError);
    // What must not be done unrecorded asks before, and is refused until there is room.
    expect(() => journal.need()).toThrow('its disk is full');
    await rm(join(dir, 'ballast'));
    await journal.append('number', 7_000);
    journal.need();
    await journal.flush();
    const numbers = await numbersOf(database);
    expect(numbers).toEqual([...Array.from({ length: last }, (_, n) => n + 1), 5_000, 7_000]);
  });

  test('killed at any moment it loses nothing acknowledged and applies nothing twice', async () => {
    await using server = await startPostgres();
    const url = await server.createDatabase();
    const dataDir = await temporaryDirectory();
    const acknowledged: number[] = [];
    let next = 0;
    for (let round = 0; round < 6; round++) {
      const script = join(import.meta.dirname, 'testing/append-journal.ts');
      const child = spawn(process.execPath, [script, dataDir, url, String(next)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      cleanups.push(() => child.kill('SIGKILL'));
      // With its output: what it has acknowledged may still be on its way, and the next one is not to begin among those numbers.
      const lines = createInterface({ input: child.stdout });
      const over = Promise.all([once(child, 'close'), once(lines, 'close')]);
      lines.on('line', (line) => acknowledged.push(Number(line)));
      await once(lines, 'line');
      await sleep(Math.random() * 150);
      child.kill('SIGKILL');
      await over;
      next = Math.max(...acknowledged) + 100;
    }
    const { database, dispose } = await temporaryPglite({ url });
    cleanups.push(dispose);
    const options = {
      dir: `${dataDir}/journal`,
      database,
      sinks: { number: numberSink },
      clock: systemClock,
      log: silent,
    };
    const journal = await createJournal<Kinds>(options);
    await journal.flush();
    await journal.close();
    const numbers = await numbersOf(database);
    const present = new Set(numbers);
    expect(numbers).toHaveLength(present.size);
    expect(acknowledged.filter((n) => !present.has(n))).toEqual([]);
    // What was written but not acknowledged before the kill may be there; nothing else.
    expect(numbers.length - acknowledged.length).toBeLessThanOrEqual(6 * 4);
  });
});
