import { hash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { AwsChunkedDecoder } from './aws-chunked.ts';
import { bodyCutShort, feed, HashGate, sameHash } from './hash-gate.ts';
import { type AuthenticatedBody, bodyMismatch } from './sigv4.ts';
import { type Spool, tooLarge } from './spool.ts';

/**
 * A body that belongs to its signature. A stream may still fail: at its end (declared hash), and its reader must then
 * treat all of it as never sent. A stream that is not read to its end must be destroyed.
 */
export type GatedBody =
  | { kind: 'buffer'; data: Buffer }
  | { kind: 'stream'; stream: Readable; length: number | undefined };

export interface BodyGateOptions {
  /** From the header; 0 without a body, `undefined` with chunked transfer. */
  contentLength: number | undefined;
  /** Longer bodies end with 413 `RequestEntityTooLargeException`. */
  maxBytes: number;
  spool: Spool;
  /** Takes memory for what is handed on whole, as it comes. */
  hold: Hold;
}

/** Takes so many bytes of memory for a body, until its request is answered. Throws the wire's error where there are none. */
export type Hold = (bytes: number) => void;

/** Up to this a body is handed on whole: one allocation is cheaper than the machinery of streams. */
const WHOLE_BYTES = 64 * 1024;

/**
 * Turns a request's stream into a verified body: small ones whole, declared ones streaming, undeclared ones spooled first.
 * Throws (or ends the stream with) `ServiceError`: 403 when hash or signature do not fit, 413, 503 without disk, and
 * `ValidationException` when the client goes away. Never destroys `source`.
 */
export async function gateBody(
  source: Readable,
  body: AuthenticatedBody,
  options: BodyGateOptions,
): Promise<GatedBody> {
  const { contentLength, maxBytes, spool, hold } = options;
  if (contentLength !== undefined && contentLength > maxBytes) throw tooLarge(maxBytes);
  switch (body.kind) {
    case 'declared': {
      if (!isSmall(contentLength)) return streamed(feed(source, new HashGate(body.sha256, maxBytes)), contentLength);
      const data = await collect(source, contentLength, hold);
      if (!sameHash(hash('sha256', data, 'hex'), body.sha256)) throw bodyMismatch();
      return { kind: 'buffer', data };
    }
    case 'unsigned':
      return isSmall(contentLength)
        ? { kind: 'buffer', data: await collect(source, contentLength, hold) }
        : streamed(feed(source, new HashGate(undefined, maxBytes)), contentLength);
    case 'chunked':
      return streamed(feed(source, new AwsChunkedDecoder({ ...body, maxBytes })), undefined);
    case 'undeclared': {
      if (isSmall(contentLength)) {
        const data = await collect(source, contentLength, hold);
        if (!body.verify(hash('sha256', data, 'hex'))) throw body.mismatch();
        return { kind: 'buffer', data };
      }
      const spooled = await spool.take(source, maxBytes);
      if (!body.verify(spooled.sha256)) {
        if (spooled.kind === 'file') await spooled.discard();
        throw body.mismatch();
      }
      if (spooled.kind === 'file') return streamed(spooled.open(), spooled.length);
      hold(spooled.length);
      return { kind: 'buffer', data: spooled.data };
    }
  }
}

function isSmall(contentLength: number | undefined): contentLength is number {
  return contentLength !== undefined && contentLength <= WHOLE_BYTES;
}

function streamed(stream: Readable, length: number | undefined): GatedBody {
  return { kind: 'stream', stream, length };
}

/** Reads to the end; a single part is passed on as it is. Rejects with 413 past `maxBytes`, and with what `hold` throws. */
function collect(source: Readable, maxBytes: number, hold: Hold): Promise<Buffer> {
  if (maxBytes === 0) return Promise.resolve(Buffer.alloc(0));
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let length = 0;
    const settle = (error?: unknown): void => {
      source.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose);
      if (error) {
        source.pause();
        source.on('error', () => {});
        reject(error);
      } else resolve(parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts, length));
    };
    const onData = (part: Buffer): void => {
      parts.push(part);
      length += part.length;
      try {
        if (length > maxBytes) throw tooLarge(maxBytes);
        hold(part.length);
      } catch (error) {
        settle(error);
      }
    };
    const onEnd = (): void => settle();
    const onError = (cause: Error): void => settle(bodyCutShort(cause));
    const onClose = (): void => settle(bodyCutShort());
    if (source.destroyed) settle(bodyCutShort());
    else source.on('data', onData).once('end', onEnd).once('error', onError).once('close', onClose);
  });
}
