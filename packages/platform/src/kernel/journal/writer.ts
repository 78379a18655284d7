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
  /** How long records that nobody waits for may gather before they are written, in milliseconds. */
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
  /** Bytes that are synced; whatever lies beyond is cut before the next write. */
  size: number;
}

const MAX_WAITING = 10_000;
const MAX_GROUP_BYTES = 4 << 20;

/** The writing end: numbers records, and writes and syncs them in groups, so that many share one sync. */
export class JournalWriter {
  readonly #options: WriterOptions;
  #pending: Entry[] = [];
  #pendingBytes = 0;
  #waitingForRoom: (() => void)[] = [];
  #nextSeq: number;
  #segment: Open | undefined;
  #closed: Segment[];
  #dirty = false;
  #totalBytes: number;
  #writing: Promise<void> | undefined;
  #wake: (() => void) | undefined;
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

  /** Resolves when everything taken so far was written or has failed. */
  async settle(): Promise<void> {
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
    const unwritten = this.#pending.splice(0);
    for (const entry of unwritten) entry.done?.reject(new JournalWriteError('the journal is closed'));
    for (const resume of this.#waitingForRoom.splice(0)) resume();
    await this.#segment?.file.close();
  }

  #enqueue(sink: string, json: string, done?: Entry['done']): void {
    if (this.#ended) throw new JournalWriteError('the journal is closed');
    const { directory, maxBytes } = this.#options;
    if (done && this.#totalBytes >= maxBytes) {
      throw new JournalFullError(directory, `${maxBytes} bytes wait for the database already`);
    }
    const seq = this.#nextSeq;
    const bytes = encodeFrame({ seq, sink, json });
    this.#nextSeq++;
    this.#pending.push({ bytes, seq, done });
    this.#pendingBytes += bytes.length;
    if (done) this.#wake?.();
    this.#writing ??= this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    let failures = 0;
    while (this.#pending.length > 0) {
      const awaited = this.#pending.some((entry) => entry.done);
      if (failures > 0) await this.#pause(this.#options.retryMs);
      else if (!awaited) await this.#pause(this.#options.lingerMs);
      const group = this.#takeGroup();
      try {
        await this.#writeGroup(group);
        failures = 0;
      } catch (error) {
        failures++;
        this.#fail(group, error);
        // Once closing, what cannot be written now never will be.
        if (this.#ended) break;
      }
    }
    // In the same turn as the last look at the queue, so that no record slips in between unseen.
    this.#writing = undefined;
  }

  /** Ends early when someone waits for a record or wants everything settled. */
  async #pause(ms: number): Promise<void> {
    if (this.#ended) return;
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

  async #writeGroup(group: Entry[]): Promise<void> {
    const { maxBytes, segmentBytes, directory } = this.#options;
    if (this.#totalBytes >= maxBytes) throw new JournalFullError(directory, 'too much waits for the database');
    const first = group[0];
    const last = group.at(-1);
    if (!first || !last) return;
    const segment = await this.#openSegment(first.seq, segmentBytes);
    const bytes = Buffer.concat(group.map((entry) => entry.bytes));
    this.#dirty = true;
    for (let written = 0; written < bytes.length; ) {
      const { bytesWritten } = await segment.file.write(bytes, written, bytes.length - written, segment.size + written);
      written += bytesWritten;
    }
    await segment.file.datasync();
    this.#dirty = false;
    segment.size += bytes.length;
    this.#totalBytes += bytes.length;
    this.#durableSeq = last.seq;
    this.#release(bytes.length);
    for (const entry of group) entry.done?.resolve();
    this.#options.onDurable();
  }

  async #openSegment(firstSeq: number, limit: number): Promise<Open> {
    const current = this.#segment;
    // A sync that failed may have lost pages for good: after a failure the rest is cut off and a new file begun.
    if (current && !this.#dirty && current.size < limit) return current;
    if (current) {
      if (this.#dirty) {
        await current.file.truncate(current.size);
        await current.file.datasync();
      }
      this.#dirty = false;
      if (current.size === 0) return current;
      this.#segment = undefined;
      this.#closed.push({ path: current.path, firstSeq: current.firstSeq });
      await current.file.close();
    }
    const path = segmentPath(this.#options.directory, firstSeq);
    const file = await open(path, 'w+', 0o600);
    this.#segment = { path, firstSeq, file, size: 0 };
    await syncDirectory(this.#options.directory);
    return this.#segment;
  }

  /** Those who wait are told; what nobody waits for stays for the next try. */
  #fail(group: Entry[], cause: unknown): void {
    const error = writeError(this.#options.directory, cause);
    const kept = group.filter((entry) => !entry.done);
    this.#pending = [...kept, ...this.#pending];
    this.#release(group.reduce((sum, entry) => sum + (entry.done ? entry.bytes.length : 0), 0));
    for (const entry of group) entry.done?.reject(error);
    this.#options.onFailure(error);
  }

  #release(bytes: number): void {
    this.#pendingBytes -= bytes;
    for (const resume of this.#waitingForRoom.splice(0)) resume();
  }
}

function writeError(directory: string, cause: unknown): Error {
  if (cause instanceof JournalFullError) return cause;
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT') return new JournalFullError(directory, 'its disk is full', cause);
  const message = cause instanceof Error ? cause.message : String(cause);
  return new JournalWriteError(`the journal (${directory}) cannot be written: ${message}`, { cause });
}
