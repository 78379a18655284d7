import { createHash, type Hash, timingSafeEqual } from 'node:crypto';
import { type Readable, Transform, type TransformCallback } from 'node:stream';
import { errors } from '@agentplatform/contract';
import { bodyMismatch } from './sigv4.ts';
import { tooLarge } from './spool.ts';

/**
 * Passes a body on while hashing it, always one part behind: the last part goes out only when the hash is the declared
 * one. Otherwise the stream ends in an error, so whoever reads it never sees a complete body.
 */
export class HashGate extends Transform {
  readonly #hash: Hash | undefined;
  readonly #sha256: string | undefined;
  readonly #maxBytes: number;
  #held: Buffer | undefined;
  #length = 0;

  /** Without `sha256` only the length is watched. */
  constructor(sha256: string | undefined, maxBytes: number) {
    super();
    this.#sha256 = sha256;
    this.#hash = sha256 === undefined ? undefined : createHash('sha256');
    this.#maxBytes = maxBytes;
  }

  override _transform(part: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#length += part.length;
    if (this.#length > this.#maxBytes) {
      done(tooLarge(this.#maxBytes));
    } else if (!this.#hash) {
      done(null, part);
    } else if (part.length === 0) {
      done();
    } else {
      this.#hash.update(part);
      const before = this.#held;
      this.#held = part;
      done(null, before);
    }
  }

  override _flush(done: TransformCallback): void {
    if (this.#hash && !sameHash(this.#hash.digest('hex'), this.#sha256)) done(bodyMismatch());
    else done(null, this.#held);
  }
}

/** Compares in constant time; both are hex of equal length. */
export function sameHash(actual: string, declared: string | undefined): boolean {
  const right = Buffer.from(declared ?? '', 'latin1');
  const left = Buffer.from(actual, 'latin1');
  return left.length === right.length && timingSafeEqual(left, right);
}

/**
 * Pipes a request into a stage. Unlike `pipeline` it leaves the request alone when the stage fails, for destroying a
 * request destroys the socket on which the error has to be answered. Whoever reads the stage, however late, meets its
 * error; until then, and after them, the error is heard here, for one that nobody hears ends the whole server.
 */
export function feed<T extends Transform>(source: Readable, stage: T): T {
  const onError = (cause: Error): void => {
    stage.destroy(bodyCutShort(cause));
  };
  const onClose = (): void => {
    if (!source.readableEnded) onError(new Error('closed before its end'));
  };
  stage.on('error', () => {});
  source.once('error', onError).once('close', onClose);
  stage.once('close', () => {
    source.unpipe(stage);
    source.off('error', onError).off('close', onClose);
    source.on('error', () => {});
  });
  // What has closed already says so no more.
  if (source.closed) onClose();
  source.pipe(stage);
  return stage;
}

/** The client went away, or stopped short of the length that it announced. */
export function bodyCutShort(cause?: unknown): Error {
  return errors.validation('The body ended before its announced length.', { cause });
}
