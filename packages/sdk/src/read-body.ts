import type { IncomingMessage } from 'node:http';
import { messageOf, RequestError } from './request-error.ts';

/** Reads a whole request body as UTF-8 text; rejects with a `RequestError` past `limit` bytes (413) or on invalid UTF-8 (400). */
export async function readBody(request: IncomingMessage, limit: number): Promise<string> {
  const tooLarge = (): RequestError =>
    new RequestError(413, `The payload is larger than ${limit} bytes, the limit of this agent.`);
  if (Number(request.headers['content-length'] ?? 0) > limit) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  // A plain listener: an async iterator would destroy the socket on early exit, and with it the 413.
  await new Promise<void>((resolve, reject) => {
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) reject(tooLarge());
      else chunks.push(chunk);
    });
    request.once('end', resolve);
    request.once('error', reject);
    request.once('close', () => reject(new RequestError(400, 'The caller went away before the payload was complete.')));
  });
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw new RequestError(400, 'The payload is not valid UTF-8.');
  }
}

/**
 * What a body says: JSON, whatever its content type claims (clients that set none send `text/plain` or octets). Only a
 * body of `text/*` that is no JSON is taken as the text that it is.
 */
export function decodePayload(text: string, contentType: string | undefined): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (contentType?.trim().toLowerCase().startsWith('text/')) return text;
    if (text.trim() === '')
      throw new RequestError(400, 'The payload is empty; send a JSON object such as {"prompt":"hi"}.');
    throw new RequestError(400, `The payload is not valid JSON: ${messageOf(error)}`);
  }
}
