import { appendFile, type FileHandle, open, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { type Clock, sleep } from '../clock.ts';
import {
  type Database,
  DatabaseBusyError,
  DatabaseError,
  DatabaseUnavailableError,
  type Executor,
  StorageFullError,
} from '../storage/index.ts';
import type { Frame } from './frame.ts';
import { lockPosition, storePosition } from './position.ts';
import { readSegment, type Segment } from './segment.ts';
import type { BoundSink } from './sinks.ts';
import type { JournalWriter } from './writer.ts';

export interface DrainOptions {
  directory: string;
  journalId: string;
  database: Database;
  sinks: ReadonlyMap<string, BoundSink>;
  writer: JournalWriter;
  clock: Clock;
  log: Logger;
  /** Records in one transaction at most. */
  maxBatch: number;
  /** How long new records gather before they are applied, in milliseconds. */
  delayMs: number;
  /** From this many bytes on the disk on it does not rest: room matters more than speed then. */
  crowdedBytes: number;
}

interface Place {
  segment: Segment;
  offset: number;
}

interface Batch {
  frames: Frame[];
  /** The position at which reading continues after this batch. */
  next: Place | undefined;
}

const MAX_BATCH_BYTES = 1 << 20;
const RETRY_FIRST_MS = 250;
const RETRY_LAST_MS = 5_000;
/** After a full batch the drain rests for this many times as long as the batch took, so that requests keep the processor. */
const REST_BY_WORK = 3;

/** The reading end: applies what is on the disk to the database, in order and exactly once, and deletes what is done. */
export class JournalDrain {
  readonly #options: DrainOptions;
  readonly #stop = new AbortController();
  #place: Place | undefined;
  #appliedSeq: number;
  #wake = Promise.withResolvers<void>();
  #progress = Promise.withResolvers<void>();
  #running: Promise<void> | undefined;
  #lastError: Error | undefined;
  #waiting = 0;
  #hurry = Promise.withResolvers<void>();

  constructor(options: DrainOptions, appliedSeq: number) {
    this.#options = options;
    this.#appliedSeq = appliedSeq;
  }

  get appliedSeq(): number {
    return this.#appliedSeq;
  }

  /** Why the last attempt failed; undefined while all goes well. */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** There are new records on the disk. */
  notify(): void {
    this.#wake.resolve();
  }

  /** Resolves once everything up to `seq` is applied; rejects when the signal aborts first. */
  async until(seq: number, signal: AbortSignal): Promise<void> {
    const aborted = Promise.withResolvers<never>();
    signal.addEventListener('abort', () => aborted.reject(signal.reason), { once: true });
    aborted.promise.catch(() => {});
    this.#waiting++;
    this.#hurry.resolve();
    try {
      while (this.#appliedSeq < seq) {
        signal.throwIfAborted();
        await Promise.race([this.#progress.promise, aborted.promise]);
      }
    } finally {
      this.#waiting--;
      if (this.#waiting === 0) this.#hurry = Promise.withResolvers();
    }
  }

  /** Ends after the batch under way. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#wake.resolve();
    await this.#running;
  }

  async #run(): Promise<void> {
    let pause = RETRY_FIRST_MS;
    let size = this.#options.maxBatch;
    while (!this.#stop.signal.aborted) {
      try {
        const begin = this.#options.clock.monotonic();
        const batch = await this.#read(size);
        if (batch.frames.length === 0) {
          this.#place = batch.next;
          await this.#deleteDrained();
          await this.#idle();
          continue;
        }
        try {
          await this.#apply(batch.frames);
        } catch (error) {
          if (isPassing(error)) throw error;
          // Something in this batch is refused: halve until it stands alone, then set it aside and go on.
          if (batch.frames.length > 1) {
            size = Math.ceil(batch.frames.length / 2);
            continue;
          }
          await this.#setAside(batch.frames, error);
        }
        this.#place = batch.next;
        this.#lastError = undefined;
        this.#progress.resolve();
        this.#progress = Promise.withResolvers();
        pause = RETRY_FIRST_MS;
        size = Math.min(size * 2, this.#options.maxBatch);
        await this.#deleteDrained();
        if (batch.frames.length === this.#options.maxBatch) {
          await this.#rest((this.#options.clock.monotonic() - begin) * REST_BY_WORK);
        }
      } catch (error) {
        this.#lastError = error instanceof Error ? error : new Error(String(error));
        this.#options.log.warn({ err: error, retryMs: pause }, 'journal records wait for the database');
        await this.#sleep(pause);
        pause = Math.min(pause * 2, RETRY_LAST_MS);
      }
    }
  }

  async #read(maxRecords: number): Promise<Batch> {
    const frames: Frame[] = [];
    let bytes = 0;
    let place = this.#place;
    const segments = this.#options.writer.segments();
    const from = place ? segments.findIndex((one) => one.path === place?.segment.path) : 0;
    for (const segment of segments.slice(Math.max(0, from))) {
      const offset = place?.segment.path === segment.path ? place.offset : 0;
      place = { segment, offset };
      if (offset === segment.size) continue;
      const file = await open(segment.path, 'r');
      try {
        for await (const { frame, end } of readSegment(file, offset, await limitOf(segment, file))) {
          place = { segment, offset: end };
          if (frame.seq <= this.#appliedSeq) continue;
          frames.push(frame);
          bytes += frame.json.length;
          if (frames.length >= maxRecords || bytes >= MAX_BATCH_BYTES) return { frames, next: place };
        }
      } finally {
        await file.close();
      }
    }
    return { frames, next: place };
  }

  async #apply(frames: Frame[]): Promise<void> {
    const { database, journalId: id, directory, sinks } = this.#options;
    const last = frames.at(-1)?.seq ?? this.#appliedSeq;
    await database.transaction(async (tx) => {
      // Another look inside the transaction: a commit whose acknowledgement was lost has moved the position already.
      const applied = await lockPosition(tx, id);
      for (const [name, group] of groupBySink(frames.filter((frame) => frame.seq > applied))) {
        const sink = sinks.get(name);
        if (!sink) throw new Error(`no sink is named ${name}`);
        await sink.apply(tx, group, { id, directory });
      }
      if (last > applied) await storePosition(tx, id, last);
    });
    this.#appliedSeq = last;
  }

  async #setAside(frames: Frame[], cause: unknown): Promise<void> {
    const { directory, database, journalId, log } = this.#options;
    const path = join(directory, 'refused.jsonl');
    const last = frames.at(-1)?.seq ?? this.#appliedSeq;
    const lines = frames.map((frame) => `${JSON.stringify({ ...frame, cause: String(cause) })}\n`);
    await appendFile(path, lines.join(''), { mode: 0o600, flush: true });
    await database.transaction(async (tx: Executor) => {
      if ((await lockPosition(tx, journalId)) < last) await storePosition(tx, journalId, last);
    });
    this.#appliedSeq = last;
    log.error({ err: cause, path, seq: last }, 'a journal record was refused and set aside');
  }

  /** The newest segment always stays: its name carries the sequence on through a restart. */
  async #deleteDrained(): Promise<void> {
    const { writer } = this.#options;
    const reading = this.#place?.segment.firstSeq ?? 0;
    for (const segment of writer.segments()) {
      if (segment.firstSeq >= reading || this.#appliedSeq < segment.firstSeq) break;
      const { size } = await stat(segment.path);
      await unlink(segment.path);
      writer.forget(segment, size);
    }
  }

  async #idle(): Promise<void> {
    await this.#wake.promise;
    this.#wake = Promise.withResolvers();
    await this.#sleep(this.#options.delayMs);
  }

  /** Lets requests have the processor, unless somebody waits for the drain or the disk fills up. */
  async #rest(ms: number): Promise<void> {
    const { writer, crowdedBytes } = this.#options;
    if (this.#waiting > 0 || writer.bytes >= crowdedBytes) return;
    await Promise.race([this.#sleep(ms), this.#hurry.promise]);
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(this.#options.clock, ms, this.#stop.signal).catch(() => {});
  }
}

/** Only the synced part of the segment being written counts. */
async function limitOf(segment: Segment & { size?: number }, file: FileHandle): Promise<number> {
  return segment.size ?? (await file.stat()).size;
}

function groupBySink(frames: Frame[]): Map<string, Frame[]> {
  return Map.groupBy(frames, (frame) => frame.sink);
}

/** Failures that pass by themselves; every other is the record's own. */
function isPassing(error: unknown): boolean {
  if (error instanceof DatabaseUnavailableError || error instanceof DatabaseBusyError) return true;
  if (error instanceof StorageFullError) return true;
  return error instanceof DatabaseError && PASSING_CODE.test(error.code ?? '');
}

/** SQLSTATE classes: transaction rollback, insufficient resources, operator intervention, system error; and statement timeout. */
const PASSING_CODE = /^(40|53|57|58)/;
