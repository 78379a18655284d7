import type { Readable } from 'node:stream';
import { LineSplitter, type LogPart } from '../exec/log-file.ts';
import type { LogLine } from '../sandbox.ts';
import type { DockerApi } from './docker-api.ts';
import { FrameReader } from './docker-frames.ts';

/** The end of what it wrote with more than `maxBytes`, or all of it; empty when the container is gone. */
export async function endOfContainer(api: DockerApi, container: string, maxBytes: number): Promise<LogPart[]> {
  // No line is shorter than a byte.
  const stream = await openLog(api, container, { tail: String(maxBytes + 1) }).catch(() => undefined);
  if (!stream) return [];
  const kept: LogPart[] = [];
  let size = 0;
  for await (const part of outputs(stream)) {
    kept.push(part);
    size += part.bytes.length;
    for (let first = kept[0]; first && size - first.bytes.length > maxBytes; first = kept[0]) {
      size -= first.bytes.length;
      kept.shift();
    }
  }
  return kept;
}

/** Lines as they come; ends with the container, or when `signal` aborts. */
export async function* followContainer(
  api: DockerApi,
  container: string,
  { follow, fromStart, signal }: { follow: boolean; fromStart: boolean; signal?: AbortSignal },
): AsyncIterable<LogLine> {
  const query = { follow: follow ? '1' : '0', tail: fromStart ? 'all' : '0' };
  const stream = await openLog(api, container, query, signal).catch(() => undefined);
  if (!stream) return;
  const splitter = new LineSplitter();
  try {
    for await (const part of outputs(stream)) yield* splitter.push(part);
  } catch (error) {
    if (!signal?.aborted) throw error;
  } finally {
    stream.destroy();
  }
  yield* splitter.rest();
}

function openLog(
  api: DockerApi,
  container: string,
  query: Record<string, string>,
  signal?: AbortSignal,
): Promise<Readable> {
  return api.stream('GET', `/containers/${container}/logs`, {
    query: { stdout: '1', stderr: '1', timestamps: '1', ...query },
    signal,
  });
}

/** Docker puts the time before each entry, in UTC with nine digits, and a space; an entry is a frame. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z $/;
const TIME_BYTES = 31;

async function* outputs(stream: Readable): AsyncIterable<LogPart> {
  const frames = new FrameReader();
  let entry: Buffer[] = [];
  for await (const chunk of stream)
    for (const { bytes, last } of frames.push(chunk)) {
      entry.push(bytes);
      if (!last) continue;
      yield partOf(Buffer.concat(entry));
      entry = [];
    }
}

function partOf(entry: Buffer): LogPart {
  const time = entry.toString('latin1', 0, TIME_BYTES);
  if (!TIME.test(time)) return { bytes: entry, at: undefined };
  // To the second, as the owners of other sandboxes note it.
  return { bytes: entry.subarray(TIME_BYTES), at: Date.parse(`${time.slice(0, 19)}Z`) };
}
