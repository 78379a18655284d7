import { type FileHandle, open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { type Clock, sleep } from '../../clock.ts';
import type { LogLine } from '../sandbox.ts';

const POLL_MS = 100;
const CHUNK = 64 * 1024;
/** A longer line is cut into several. */
const MAX_LINE = 64 * 1024;

/** A sandbox's log: `log`, and before it `log.1`, which the owner rotates; together never more than about the log bound. */
export interface LogFiles {
  current: string;
  previous: string;
}

export function logFiles(dir: string): LogFiles {
  return { current: join(dir, 'log'), previous: join(dir, 'log.1') };
}

/** A part of an output, and when it was written (milliseconds since the epoch), as far as that is known. */
export interface LogPart {
  bytes: Buffer;
  at: number | undefined;
}

/** The end of a log with more than `maxBytes`, or all of it. */
export async function endOfLog(files: LogFiles, maxBytes: number): Promise<LogPart[]> {
  // One byte more than asked for: it tells whether a line begins right behind it.
  const current = await readEnd(files, files.current, maxBytes + 1);
  const previous = await readEnd(files, files.previous, maxBytes + 1 - sizeOf(current));
  return [...previous, ...current];
}

/**
 * The text of the lines that were written last, at most `maxBytes` of them together; of a single line that is longer, its last
 * `maxBytes`. `end` is all of an output, or more than `maxBytes` of its end.
 */
export function lastText(end: LogPart[], maxBytes: number): string {
  return Buffer.concat(lastParts(end, maxBytes).map(({ bytes }) => bytes)).toString('utf8');
}

/** The same lines, each with its time. */
export function lastLines(end: LogPart[], maxBytes: number): LogLine[] {
  const splitter = new LineSplitter();
  const lines = lastParts(end, maxBytes).flatMap((part) => splitter.push(part));
  return [...lines, ...splitter.rest()];
}

function lastParts(end: LogPart[], maxBytes: number): LogPart[] {
  const all = Buffer.concat(end.map(({ bytes }) => bytes));
  if (all.length <= maxBytes) return end;
  const before = all.length - maxBytes - 1;
  const lineStart = all.indexOf('\n', before) + 1;
  const wholeLines = lineStart > 0 && lineStart < all.length;
  let skip = wholeLines ? lineStart : before + 1;
  return end.map(({ bytes, at }) => {
    const rest = bytes.subarray(skip);
    skip -= bytes.length - rest.length;
    return { bytes: rest, at };
  });
}

export interface FollowOptions {
  follow: boolean;
  fromStart: boolean;
  signal?: AbortSignal;
  clock: Clock;
  /** Whether the sandbox has ended: what is in the files then is all there will be. */
  ended(): boolean;
}

/** Lines as they come. A reader that is slower than two rotations of the log loses the lines between. */
export async function* followLog(files: LogFiles, options: FollowOptions): AsyncIterable<LogLine> {
  const splitter = new LineSplitter();
  if (options.fromStart) yield* readLines(files, files.previous, 0, splitter, options.signal);
  let position = options.fromStart ? 0 : ((await size(files.current)) ?? 0);
  let inode = await inodeOf(files.current);
  for (;;) {
    const last = options.ended() || !options.follow;
    const now = await inodeOf(files.current);
    if (now !== inode) {
      // Rotated: what was left of the file that we were reading is in `previous` now.
      if (inode !== undefined) yield* readLines(files, files.previous, position, splitter, options.signal);
      [inode, position] = [now, 0];
    }
    for await (const { line, end } of positions(files, files.current, position, splitter, options.signal)) {
      position = end;
      if (line !== undefined) yield line;
    }
    if (last || options.signal?.aborted) break;
    await sleep(options.clock, POLL_MS, options.signal).catch(() => undefined);
    if (options.signal?.aborted) break;
  }
  yield* splitter.rest();
}

async function* readLines(
  files: LogFiles,
  file: string,
  from: number,
  splitter: LineSplitter,
  signal?: AbortSignal,
): AsyncIterable<LogLine> {
  for await (const { line } of positions(files, file, from, splitter, signal)) if (line !== undefined) yield line;
}

async function* positions(
  files: LogFiles,
  file: string,
  from: number,
  splitter: LineSplitter,
  signal?: AbortSignal,
): AsyncIterable<{ line: LogLine | undefined; end: number }> {
  const handle = await open(file).catch(() => undefined);
  if (!handle) return;
  try {
    const buffer = Buffer.alloc(CHUNK);
    for (let position = from; !signal?.aborted; ) {
      const { bytesRead } = await handle.read(buffer, 0, CHUNK, position);
      if (bytesRead === 0) return;
      const read = buffer.subarray(0, bytesRead);
      const lines = timed(read, position, await timesOf(handle, files)).flatMap((part) => splitter.push(part));
      position += bytesRead;
      yield { line: undefined, end: position };
      for (const line of lines) yield { line, end: position };
    }
  } finally {
    await handle.close();
  }
}

/** From this byte of a log on it was written at that time. */
interface TimeMark {
  offset: number;
  at: number;
}

/** Empty when nobody wrote times beside this log. */
async function timesOf(log: FileHandle, files: LogFiles): Promise<TimeMark[]> {
  const { ino } = await log.stat();
  for (const file of [files.current, files.previous]) {
    const text = await readFile(`${file}.times`, 'utf8').catch(() => '');
    // The log may have been rotated since it was opened, and its times with it.
    if (!text.startsWith(`${ino}\n`)) continue;
    return [...text.matchAll(/^(\d+) (\d+)\n/gm)].map(([, offset, second]) => ({
      offset: Number(offset),
      at: 1000 * Number(second),
    }));
  }
  return [];
}

/** Cuts what was read from `position` on where the time changes. */
function timed(bytes: Buffer, position: number, marks: TimeMark[]): LogPart[] {
  const end = position + bytes.length;
  const before = marks.findLast(({ offset }) => offset <= position);
  const within = marks.filter(({ offset }) => offset > position && offset < end);
  const starts = [{ offset: position, at: before?.at }, ...within];
  return starts.map(({ offset, at }, index) => ({
    bytes: bytes.subarray(offset - position, (starts[index + 1]?.offset ?? end) - position),
    at,
  }));
}

/** Cuts text into lines, wherever its parts end. The time of a line is that of its beginning. */
export class LineSplitter {
  #decoder = new StringDecoder('utf8');
  #partial = '';
  /** When `#partial` began. */
  #began: number | undefined;

  push({ bytes, at }: LogPart): LogLine[] {
    if (this.#partial === '') this.#began = at;
    const parts = (this.#partial + this.#decoder.write(bytes)).split('\n');
    this.#partial = parts.pop() ?? '';
    const lines = parts.map((line, index) => logLine(line, index === 0 ? this.#began : at));
    if (lines.length > 0) this.#began = at;
    while (this.#partial.length > MAX_LINE) {
      lines.push(logLine(this.#partial.slice(0, MAX_LINE), this.#began));
      this.#partial = this.#partial.slice(MAX_LINE);
    }
    return lines;
  }

  /** The last line, when no line break has ended it. */
  rest(): LogLine[] {
    const rest = this.#partial + this.#decoder.end();
    this.#partial = '';
    return rest === '' ? [] : [logLine(rest, this.#began)];
  }
}

function logLine(line: string, at: number | undefined): LogLine {
  return { line, ...(at !== undefined && { at }) };
}

function sizeOf(parts: LogPart[]): number {
  return parts.reduce((sum, { bytes }) => sum + bytes.length, 0);
}

async function readEnd(files: LogFiles, file: string, maxBytes: number): Promise<LogPart[]> {
  const handle = await open(file).catch(() => undefined);
  if (!handle) return [];
  try {
    const { size: total } = await handle.stat();
    const length = Math.min(total, maxBytes);
    const buffer = Buffer.alloc(length);
    const { bytesRead } = await handle.read(buffer, 0, length, total - length);
    return timed(buffer.subarray(0, bytesRead), total - length, await timesOf(handle, files));
  } finally {
    await handle.close();
  }
}

async function size(file: string): Promise<number | undefined> {
  return (await stat(file).catch(() => undefined))?.size;
}

async function inodeOf(file: string): Promise<number | undefined> {
  return (await stat(file).catch(() => undefined))?.ino;
}
