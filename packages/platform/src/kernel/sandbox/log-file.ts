import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { type Clock, sleep } from '../clock.ts';

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

/**
 * The lines that were written last, at most `maxBytes` of them together; of a single line that is longer, its last
 * `maxBytes`.
 */
export async function tailLog(files: LogFiles, maxBytes: number): Promise<string> {
  // One byte more than asked for: it tells whether a line begins right behind it.
  const current = await readEnd(files.current, maxBytes + 1);
  const previous = await readEnd(files.previous, maxBytes + 1 - current.length);
  return lastLines(Buffer.concat([previous, current]), maxBytes);
}

/** The same of an output's end: `end` is all of it, or more than `maxBytes`. */
export function lastLines(end: Buffer, maxBytes: number): string {
  if (end.length <= maxBytes) return end.toString('utf8');
  const before = end.length - maxBytes - 1;
  const lineStart = end.indexOf('\n', before) + 1;
  const wholeLines = lineStart > 0 && lineStart < end.length;
  return end.subarray(wholeLines ? lineStart : before + 1).toString('utf8');
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
export async function* followLog(files: LogFiles, options: FollowOptions): AsyncIterable<string> {
  const splitter = new LineSplitter();
  if (options.fromStart) yield* readLines(files.previous, 0, splitter, options.signal);
  let position = options.fromStart ? 0 : ((await size(files.current)) ?? 0);
  let inode = await inodeOf(files.current);
  for (;;) {
    const last = options.ended() || !options.follow;
    const now = await inodeOf(files.current);
    if (now !== inode) {
      // Rotated: what was left of the file that we were reading is in `previous` now.
      if (inode !== undefined) yield* readLines(files.previous, position, splitter, options.signal);
      [inode, position] = [now, 0];
    }
    for await (const { line, end } of positions(files.current, position, splitter, options.signal)) {
      position = end;
      if (line !== undefined) yield line;
    }
    if (last || options.signal?.aborted) break;
    await sleep(options.clock, POLL_MS, options.signal).catch(() => undefined);
    if (options.signal?.aborted) break;
  }
  const rest = splitter.rest();
  if (rest) yield rest;
}

async function* readLines(
  file: string,
  from: number,
  splitter: LineSplitter,
  signal?: AbortSignal,
): AsyncIterable<string> {
  for await (const { line } of positions(file, from, splitter, signal)) if (line !== undefined) yield line;
}

async function* positions(
  file: string,
  from: number,
  splitter: LineSplitter,
  signal?: AbortSignal,
): AsyncIterable<{ line: string | undefined; end: number }> {
  const handle = await open(file).catch(() => undefined);
  if (!handle) return;
  try {
    const buffer = Buffer.alloc(CHUNK);
    for (let position = from; !signal?.aborted; ) {
      const { bytesRead } = await handle.read(buffer, 0, CHUNK, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      const lines = splitter.push(buffer.subarray(0, bytesRead));
      yield { line: undefined, end: position };
      for (const line of lines) yield { line, end: position };
    }
  } finally {
    await handle.close();
  }
}

/** Cuts text into lines, wherever its chunks end. */
export class LineSplitter {
  #decoder = new StringDecoder('utf8');
  #partial = '';

  push(chunk: Buffer): string[] {
    const parts = (this.#partial + this.#decoder.write(chunk)).split('\n');
    this.#partial = parts.pop() ?? '';
    while (this.#partial.length > MAX_LINE) {
      parts.push(this.#partial.slice(0, MAX_LINE));
      this.#partial = this.#partial.slice(MAX_LINE);
    }
    return parts;
  }

  rest(): string {
    const rest = this.#partial + this.#decoder.end();
    this.#partial = '';
    return rest;
  }
}

async function readEnd(file: string, maxBytes: number): Promise<Buffer> {
  const handle = await open(file).catch(() => undefined);
  if (!handle) return Buffer.alloc(0);
  try {
    const { size: total } = await handle.stat();
    const length = Math.min(total, maxBytes);
    const buffer = Buffer.alloc(length);
    const { bytesRead } = await handle.read(buffer, 0, length, total - length);
    return buffer.subarray(0, bytesRead);
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
