import type { Readable } from 'node:stream';

/**
 * All of a body, whose length was bounded by who gave it. Rejects with what broke it. Half the work of `buffer` of
 * `node:stream/consumers`, which passes megabytes through a Blob.
 */
export async function collectBody(body: Readable): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of body as AsyncIterable<Buffer>) {
    parts.push(part);
    length += part.length;
  }
  return Buffer.concat(parts, length);
}
