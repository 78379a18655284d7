import type { Readable } from 'node:stream';
import { LineSplitter } from '../log-file.ts';
import type { DockerApi } from './docker-api.ts';
import { FrameReader } from './docker-frames.ts';

/** The last `maxBytes` that a container wrote, from the start of a line unless that one line is longer; empty when it is gone. */
export async function tailContainer(api: DockerApi, container: string, maxBytes: number): Promise<string> {
  // No line is shorter than a byte, so as many lines are enough.
  const stream = await openLog(api, container, { tail: String(Math.max(1, maxBytes)) }).catch(() => undefined);
  if (!stream) return '';
  const kept: Buffer[] = [];
  let [size, total] = [0, 0];
  for await (const bytes of outputs(stream)) {
    kept.push(bytes);
    size += bytes.length;
    total += bytes.length;
    for (let first = kept[0]; first && size - first.length >= maxBytes; first = kept[0]) {
      size -= first.length;
      kept.shift();
    }
  }
  const bytes = Buffer.concat(kept);
  const text = bytes.subarray(Math.max(0, bytes.length - maxBytes)).toString('utf8');
  const firstBreak = text.indexOf('\n');
  return total > maxBytes && firstBreak >= 0 && firstBreak < text.length - 1 ? text.slice(firstBreak + 1) : text;
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
