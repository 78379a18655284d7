import type { Readable } from 'node:stream';
import type { Hold } from '../auth/index.ts';

/**
 * All of a body, whose length was bounded by who gave it; `hold` takes memory for each part. Rejects with what broke it. Half the work of
 * `buffer` of `node:stream/consumers`, which passes megabytes through a Blob.
 */
export async function collectBody(body: Readable, hold: Hold): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    hold(part.length);
    parts.push(part);
    length += part.length;
  }
  return Buffer.concat(parts, length);
}
