import { writeSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Clock } from '../clock.ts';
import { syncDirectory } from '../durable-file.ts';
import { JournalBusyError, JournalFullError, JournalWriteError } from './errors.ts';
import { encodeFrame } from './frame.ts';
import type { Recovered } from './recovery.ts';
import { type Segment, segmentPath } from './segment.ts';

export interface WriterOptions {
  directory: string;
  clock: Clock;
  /** A segment that has reached this size is followed by a new one, in bytes. */
  segmentBytes: number;
  /** Records in memory that are not on the disk yet, in bytes. */
  maxPendingBytes: number;
  /** All segments together, in bytes. */
  maxBytes: number;
  /** How long records that nobody waits for gather before they are written (a killed process loses those), in milliseconds. */
  gatherMs: number;
  /** How long what is written may wait for a sync that nobody waits for (a power cut loses that), in milliseconds. */
  lingerMs: number;
  /** Pause after a failed write, in milliseconds. */
  retryMs: number;
  onDurable(): void;
  onFailure(error: Error): void;
}

interface Entry {
  bytes: Buffer;
  seq: number;
  /** Absent when nobody waits. */
  done?: { resolve(): void; reject(error: Error): void };
}

interface Open extends Segment {
  file: FileHandle;
  /** Number of synced bytes. The bytes after them are cut off after a failure. */
  size: number;
  /** Bytes that are written. */
  written: number;
}

const MAX_WAITING = 10_000;
const MAX_GROUP_BYTES = 4 << 20;

/**
 * The writing end: numbers records, writes them at once, where a killed process cannot lose them any more, and syncs them a
 * little later, so that many share one sync.
 */
export class JournalWriter {
  readonly #options: WriterOptions;
  #pending: Entry[] = [];
  /** Written, not synced. */
  #unsynced: Entry[] = [];
  /** Clock time from which on the unsynced are overdue. */
  #syncAt = 0;
  #pendingBytes = 0;
  #waitingForRoom: (() => void)[] = [];
  #nextSeq: number;
  #segment: Open | undefined;
  #closed: Segment[];
  #dirty = false;
  #totalBytes: number;
  #writing: Promise<void> | undefined;
  #wake: (() => void) | undefined;
  /** Someone waits for all that was taken. */
  #hurry = false;
  /** Records taken for which someone waits. */
  #waiters = 0;
  #ended = false;
  #durableSeq: number;

  constructor(options: WriterOptions, recovered: Recovered) {
    this.#options = options;
    this.#closed = [...recovered.segments];
    this.#totalBytes = recovered.bytes;
    this.#nextSeq = recovered.lastSeq + 1;
    this.#durableSeq = recovered.lastSeq;
  }

  /** Sequence number of the last record on the disk. */
  get durableSeq(): number {
    return this.#durableSeq;
  }

  get bytes(): number {
    return this.#totalBytes;
  }

  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Segments oldest first, each with the bytes that may be read (absent: all of it). */
  segments(): (Segment & { size?: number })[] {
    return this.#segment ? [...this.#closed, this.#segment] : [...this.#closed];
  }

  /** Resolves when the record is on the disk; waits while too much is in memory. */
  async append(sink: string, json: string): Promise<void> {
    while (this.#pendingBytes >= this.#options.maxPendingBytes) {
      if (this.#waitingForRoom.length >= MAX_WAITING) {
        throw new JournalBusyError(`${MAX_WAITING} callers wait for the journal already; try again`);
      }
      await new Promise<void>((resolve) => this.#waitingForRoom.push(resolve));
    }
    await new Promise<void>((resolve, reject) => this.#enqueue(sink, json, { resolve, reject }));
  }

  /** Takes the record without waiting; false when there is no room for it in memory. */
  offer(sink: string, json: string): boolean {
    if (this.#pendingBytes >= this.#options.maxPendingBytes || this.#ended) return false;
    this.#enqueue(sink, json);
    return true;
  }

  /** Throws `JournalFullError` where a further record finds no room. */
  need(): void {
    const { directory, maxPendingBytes, maxBytes } = this.#options;
    if (this.#pendingBytes >= maxPendingBytes)
      throw new JournalFullError(directory, `${this.#pendingBytes} bytes wait for the disk already`);
    if (this.#totalBytes >= maxBytes) throw tooMuchWaits(directory, maxBytes);
  }

  /** Resolves when everything taken so far was written or has failed. */
  async settle(): Promise<void> {
    if (!this.#writing) return;
    this.#hurry = true;
    this.#wake?.();
    await this.#writing;
  }

  /** Forgets a segment that was deleted. */
  forget(segment: Segment, bytes: number): void {
    this.#closed = this.#closed.filter((one) => one.path !== segment.path);
    this.#totalBytes -= bytes;
  }

  async close(): Promise<void> {
    this.#ended = true;
    await this.settle();
    const closed = new JournalWriteError('the journal is closed');
    this.#settleEntries(this.#pending.splice(0), (entry) => entry.done?.reject(closed));
    await this.#segment?.file.close();
  }

  #enqueue(sink: string, json: string, done?: Entry['done']): void {
    if (this.#ended) throw new JournalWriteError('the journal is closed');
    const { directory, maxBytes } = this.#options;
    if (done && this.#totalBytes >= maxBytes) throw tooMuchWaits(directory, maxBytes);
    const seq = this.#nextSeq;
    const bytes = encodeFrame({ seq, sink, json });
    this.#nextSeq++;
    this.#pending.push({ bytes, seq, done });
    this.#pendingBytes += bytes.length;
    if (done) this.#waiters++;
    if (done || this.#pending.length === 1) this.#wake?.();
    this.#writing ??= this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    let failures = 0;
    while (this.#pending.length + this.#unsynced.length > 0) {
      if (failures > 0) await this.#pause(this.#options.retryMs);
      else if (this.#pending.length === 0) await this.#pause(this.#syncAt - this.#now());
      else if (!this.#awaited) await this.#pause(this.#options.gatherMs);
      try {
        if (this.#pending.length > 0) await this.#write(this.#takeGroup());
        if (this.#awaited || this.#now() >= this.#syncAt || this.#isFull()) await this.#sync();
        failures = 0;
      } catch (error) {
        failures++;
        this.#fail(error);
        // Once closing, what cannot be written now never will be.
        if (this.#ended) break;
      }
    }
    this.#hurry = false;
    // In the same turn as the last look at the queue, so that no record slips in between unseen.
    this.#writing = undefined;
  }

  get #awaited(): boolean {
    return this.#hurry || this.#waiters > 0;
  }

  #now(): number {
    return this.#options.clock.monotonic();
  }

  /** Ends early when someone waits for a record, wants everything settled, or brings the first record since the last write. */
  async #pause(ms: number): Promise<void> {
    if (this.#ended || ms <= 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.#options.clock.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
    this.#wake = undefined;
  }

  #takeGroup(): Entry[] {
    let bytes = 0;
    let count = 0;
    for (const entry of this.#pending) {
      bytes += entry.bytes.length;
      if (count > 0 && bytes > Math.min(MAX_GROUP_BYTES, this.#options.maxBytes / 4)) break;
      count++;
    }
    return this.#pending.splice(0, count);
  }

  async #write(group: Entry[]): Promise<void> {
    const { maxBytes, segmentBytes, directory } = this.#options;
    if (this.#unsynced.length === 0) this.#syncAt = this.#now() + this.#options.lingerMs;
    // Unsynced from here on: a failure may leave a part of them behind.
    this.#unsynced.push(...group);
    if (this.#totalBytes >= maxBytes) throw new JournalFullError(directory, 'too much waits for the database');
    const segment = await this.#openSegment(group[0]?.seq ?? this.#nextSeq, segmentBytes);
    const bytes = Buffer.concat(group.map((entry) => entry.bytes));
    this.#dirty = true;
    // Into the page cache, in this thread: to hand so little to another one and wait for it costs a request many times as much.
    for (let done = 0; done < bytes.length; ) {
      done += writeSync(segment.file.fd, bytes, done, bytes.length - done, segment.written + done);
    }
    this.#dirty = false;
    segment.written += bytes.length;
  }

  /** Whether the open segment takes nothing more; what is in it is synced before the next one is begun. */
  #isFull(): boolean {
    return (this.#segment?.written ?? 0) >= this.#options.segmentBytes;
  }

  async #sync(): Promise<void> {
    const segment = this.#segment;
    const synced = this.#unsynced;
    const last = synced.at(-1);
    if (!segment || !last) return;
    this.#dirty = true;
    await segment.file.datasync();
    this.#dirty = false;
    const bytes = segment.written - segment.size;
    segment.size = segment.written;
    this.#totalBytes += bytes;
    this.#durableSeq = last.seq;
    this.#unsynced = [];
    this.#settleEntries(synced, (entry) => entry.done?.resolve());
    this.#options.onDurable();
  }

  async #openSegment(firstSeq: number, limit: number): Promise<Open> {
    const current = this.#segment;
    // A sync that failed may have lost pages for good: after a failure the rest is cut off and a new file begun.
    if (current && !this.#dirty && current.written < limit) return current;
    if (current) {
      if (this.#dirty) {
        await current.file.truncate(current.size);
        await current.file.datasync();
        current.written = current.size;
      }
      this.#dirty = false;
      if (current.size === 0) return current;
      this.#segment = undefined;
      this.#closed.push({ path: current.path, firstSeq: current.firstSeq });
      await current.file.close();
    }
    const path = segmentPath(this.#options.directory, firstSeq);
    const file = await open(path, 'w+', 0o600);
    this.#segment = { path, firstSeq, file, size: 0, written: 0 };
    await syncDirectory(this.#options.directory);
    return this.#segment;
  }

  /** Those who wait are told; what nobody waits for stays for the next try. */
  #fail(cause: unknown): void {
    const error = writeError(this.#options.directory, cause);
    // Whatever of it reached the disk is cut off there before the next write.
    if (this.#unsynced.length > 0) this.#dirty = true;
    const failed = this.#unsynced;
    this.#unsynced = [];
    this.#pending = [...failed.filter((entry) => !entry.done), ...this.#pending];
    this.#settleEntries(
      failed.filter((entry) => entry.done),
      (entry) => entry.done?.reject(error),
    );
    this.#options.onFailure(error);
  }

  /** Records that are done with, for good or ill: their room is free, and those who wait for it go on. */
  #settleEntries(entries: Entry[], settle: (entry: Entry) => void): void {
    for (const entry of entries) {
      this.#pendingBytes -= entry.bytes.length;
      if (entry.done) this.#waiters--;
      settle(entry);
    }
    for (const resume of this.#waitingForRoom.splice(0)) resume();
  }
}

const tooMuchWaits = (directory: string, maxBytes: number): JournalFullError =>
  new JournalFullError(directory, `${maxBytes} bytes wait for the database already`);

function writeError(directory: string, cause: unknown): Error {
  if (cause instanceof JournalFullError) return cause;
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT') return new JournalFullError(directory, 'its disk is full', cause);
  const message = cause instanceof Error ? cause.message : String(cause);
  return new JournalWriteError(`the journal (${directory}) cannot be written: ${message}`, { cause });
}
