import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { requestIdHeader, type WireResponse } from '@agentplatform/contract';
import { INERT_HEADERS, mayRun } from './inert.ts';
import { PushBody } from './push-body.ts';

/**
 * Sends a response. Resolves when its last byte is handed to the socket; rejects when a streamed body breaks, and who called
 * destroys the socket then, so that the client sees a broken answer instead of a short one.
 */
export async function respond(res: ServerResponse, response: WireResponse, requestId: string): Promise<void> {
  const { status, headers, body } = response;
  const head = [requestIdHeader, requestId];
  for (const name in headers) head.push(name, headers[name] ?? '');
  if (mayRun(headers['content-type']))
    for (const [name, value] of Object.entries(INERT_HEADERS)) head.push(name, value);
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) {
    if (status !== 204) head.push('content-length', String(body === undefined ? 0 : Buffer.byteLength(body)));
    res.writeHead(status, head);
    res.end(body);
    return;
  }
  if (res.destroyed) {
    await abandon(body);
    throw new Error('the client went away before its answer began');
  }
  if (body instanceof PushBody) {
    if (body.length !== undefined) head.push('content-length', body.length);
    res.writeHead(status, head);
    await body.pushTo(res);
    return;
  }
  res.writeHead(status, head);
  // A first part that is there already goes out in one packet with the head; one that is not must not hold the head up.
  const soon = setImmediate(() => res.flushHeaders());
  try {
    await pipeline(Readable.from(body, { objectMode: true }), res);
  } finally {
    clearImmediate(soon);
  }
}

/** Ends a body that nobody will read, so that what it holds (a session's lease, a command) is let go. */
async function abandon(body: PushBody | AsyncIterable<Uint8Array>): Promise<void> {
  if (body instanceof PushBody) return body.cancel(new Error('the client went away before the answer began'));
  // A generator that was never begun would end without running its `finally`.
  const parts = body[Symbol.asyncIterator]();
  const first = await parts.next();
  if (!first.done) await parts.return?.();
}
