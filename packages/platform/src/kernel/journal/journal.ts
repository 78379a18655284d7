import { randomUUID } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { replaceFile } from '../durable-file.ts';
import type { Database } from '../storage/index.ts';
import { JournalDrain } from './drain.ts';
import { lockPosition } from './position.ts';
import { recoverJournal } from './recovery.ts';
import { bindSinks, type Origin, type Sinks } from './sinks.ts';
import { JournalWriter } from './writer.ts';

/**
 * A write-ahead journal: records are on the disk within a shared sync, and reach the database later, in batches, in
 * order, each exactly once, through any crash of the process and any absence of the database.
 */
export interface Journal<Kinds> extends AsyncDisposable {
  /**
   * Resolves when the record is on the disk. Throws `JournalFullError`, `JournalBusyError`, `JournalWriteError` or
   * `RecordTooLargeError`; after a `JournalWriteError` or a full disk the record may have been written or not.
   */
  append<K extends keyof Kinds & string>(sink: K, record: Kinds[K]): Promise<void>;
  /**
   * Takes a record without waiting; within `gatherMs` it is beyond what a killed process loses, within `lingerMs` more on
   * the disk. False when it was dropped for want of room.
   */
  record<K extends keyof Kinds & string>(sink: K, record: Kinds[K]): boolean;
  /** Resolves when everything taken before is in the database; rejects with a TimeoutError after `timeoutMs`. */
  flush(timeoutMs?: number): Promise<void>;
  stats(): JournalStats;
  /** Which journal it is, and where. */
  readonly origin: Origin;
  /** Throws `JournalFullError` or `JournalWriteError` while the disk takes no records, or no more of them find room: what must not be done unrecorded is refused by it. */
  need(): void;
  /** Writes what is in memory, gives the database `timeoutMs` to take it, and ends; what remains is applied at the next start. */
  close(timeoutMs?: number): Promise<void>;
}

export interface JournalStats {
  durableSeq: number;
  appliedSeq: number;
  /** Bytes in memory that are not on the disk yet. */
  pendingBytes: number;
  /** Bytes on the disk. */
  bytes: number;
  /** Records that `record` dropped since the start. */
  dropped: number;
  /** Why the disk or the database takes nothing at present. */
  failure: string | undefined;
}

export interface JournalOptions<Kinds> {
  /** A directory of its own below the locked data directory. */
  dir: string;
  database: Database;
  sinks: Sinks<Kinds>;
  clock: Clock;
  log: Logger;
  segmentBytes?: number;
  maxPendingBytes?: number;
  /** All segments together; beyond it records are refused until the database has taken some. */
  maxBytes?: number;
  gatherMs?: number;
  lingerMs?: number;
  retryMs?: number;
  maxBatch?: number;
  drainDelayMs?: number;
}

const DEFAULTS = {
  segmentBytes: 16 << 20,
  maxPendingBytes: 8 << 20,
  maxBytes: 1 << 30,
  gatherMs: 1,
  lingerMs: 20,
  retryMs: 1_000,
  maxBatch: 500,
  drainDelayMs: 100,
};

/** Opens the journal in `dir`, repairs its end after a crash, and starts to apply what the database lacks. */
export async function createJournal<Kinds>(options: JournalOptions<Kinds>): Promise<Journal<Kinds>> {
  const { dir: directory, database, clock, log } = options;
  const { segmentBytes, maxPendingBytes, maxBytes, gatherMs, lingerMs, retryMs, maxBatch, drainDelayMs } = {
    ...DEFAULTS,
    ...definedOf(options),
  };
  const recovered = await recoverJournal(directory, log);
  const journalId = await identify(directory);
  const applied = await database.transaction((tx) => lockPosition(tx, journalId));
  let writeFailure: Error | undefined;
  let dropped = 0;
  const writer = new JournalWriter(
    {
      directory,
      clock,
      // Several must fit: the newest one is never deleted.
      segmentBytes: Math.min(segmentBytes, maxBytes / 4),
      maxPendingBytes,
      maxBytes,
      gatherMs,
      lingerMs,
      retryMs,
      onDurable: () => {
        writeFailure = undefined;
        drain.notify();
      },
      onFailure: (error) => {
        if (!writeFailure) log.warn({ err: error }, 'the journal cannot be written');
        writeFailure = error;
      },
    },
    // A database that knows more than the disk (a restored directory) must not take new records for old ones.
    { ...recovered, lastSeq: Math.max(recovered.lastSeq, applied) },
  );
  const sinks = bindSinks(options.sinks);
  const drainOptions = {
    directory,
    journalId,
    database,
    sinks,
    writer,
    clock,
    log,
    maxBatch,
    delayMs: drainDelayMs,
    crowdedBytes: maxBytes / 4,
  };
  const drain = new JournalDrain(drainOptions, applied);
  drain.start();

  const flush = async (timeoutMs = 30_000): Promise<void> => {
    const signal = AbortSignal.timeout(timeoutMs);
    const timedOut = new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    });
    timedOut.catch(() => {});
    await Promise.race([writer.settle(), timedOut]);
    drain.notify();
    await drain.until(writer.durableSeq, signal);
  };
  const close = async (timeoutMs = 5_000): Promise<void> => {
    await flush(timeoutMs).catch((error: unknown) =>
      log.warn({ err: error }, 'journal records remain for the next start'),
    );
    await writer.close();
    await drain.stop();
  };
  return {
    append: (sink, record) => writer.append(sink, JSON.stringify(record)),
    record: (sink, record) => {
      const taken = writer.offer(sink, JSON.stringify(record));
      if (!taken) dropped++;
      return taken;
    },
    flush,
    origin: { id: journalId, directory },
    need: () => {
      if (writeFailure) throw writeFailure;
      writer.need();
    },
    stats: () => ({
      durableSeq: writer.durableSeq,
      appliedSeq: drain.appliedSeq,
      pendingBytes: writer.pendingBytes,
      bytes: writer.bytes,
      dropped,
      failure: writeFailure?.message ?? drain.lastError?.message,
    }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function definedOf<T extends object>(options: T): Partial<T> {
  const defined: Partial<T> = { ...options };
  for (const [key, value] of Object.entries(options)) if (value === undefined) Reflect.deleteProperty(defined, key);
  return defined;
}

/** Tells the positions of several journals in one database apart; a directory that was lost begins a new journal. */
async function identify(directory: string): Promise<string> {
  await mkdir(directory, { recursive: true });
  const path = join(directory, 'id');
  const existing = await readFile(path, 'utf8').catch(() => '');
  if (existing.trim()) return existing.trim();
  const id = randomUUID();
  await replaceFile(path, `${id}\n`);
  return id;
}
