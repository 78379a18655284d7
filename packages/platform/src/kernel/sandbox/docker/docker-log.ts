import type { Readable } from 'node:stream';
import { LineSplitter, lastLines } from '../log-file.ts';
import type { DockerApi } from './docker-api.ts';
import { FrameReader } from './docker-frames.ts';

/** As `tailLog`; empty when the container is gone. */
export async function tailContainer(api: DockerApi, container: string, maxBytes: number): Promise<string> {
  // No line is shorter than a byte.
  const stream = await openLog(api, container, { tail: String(maxBytes + 1) }).catch(() => undefined);
  if (!stream) return '';
  const kept: Buffer[] = [];
  let size = 0;
  for await (const bytes of outputs(stream)) {
    kept.push(bytes);
    size += bytes.length;
    for (let first = kept[0]; first && size - first.length > maxBytes; first = kept[0]) {
      size -= first.length;
      kept.shift();
    }
  }
  return lastLines(Buffer.concat(kept), maxBytes);
}

/** Lines as they come; ends with the container, or when `signal` aborts. */
export async function* followContainer(
  api: DockerApi,
  container: string,
  { follow, fromStart, signal }: { follow: boolean; fromStart: boolean; signal?: AbortSignal },
): AsyncIterable<string> {
  const query = { follow: follow ? '1' : '0', tail: fromStart ? 'all' : '0' };
  const stream = await openLog(api, container, query, signal).catch(() => undefined);
  if (!stream) return;
  const splitter = new LineSplitter();
  try {
    for await (const bytes of outputs(stream)) yield* splitter.push(bytes);
  } catch (error) {
    if (!signal?.aborted) throw error;
  } finally {
    stream.destroy();
  }
  const rest = splitter.rest();
  if (rest) yield rest;
}

function openLog(
  api: DockerApi,
  container: string,
  query: Record<string, string>,
  signal?: AbortSignal,
): Promise<Readable> {
  return api.stream('GET', `/containers/${container}/logs`, { query: { stdout: '1', stderr: '1', ...query }, signal });
}

async function* outputs(stream: Readable): AsyncIterable<Buffer> {
  const frames = new FrameReader();
  for await (const chunk of stream) for (const { bytes } of frames.push(chunk)) yield bytes;
}
