import type { IncomingMessage } from 'node:http';

const READ_MS = 10_000;

/** Read a urlencoded body of at most `limit` bytes in at most ten seconds; undefined if it is larger or breaks off. */
export async function readForm(
  request: IncomingMessage,
  limit: number,
): Promise<{ form: URLSearchParams; bytes: number } | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const timer = setTimeout(() => request.destroy(), READ_MS);
  try {
    for await (const chunk of request) {
      if (!Buffer.isBuffer(chunk)) return undefined;
      bytes += chunk.length;
      if (bytes > limit) return undefined;
      chunks.push(chunk);
    }
    return { form: new URLSearchParams(Buffer.concat(chunks).toString('utf8')), bytes };
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
