import { createHash, createHmac, type Hash, hash } from 'node:crypto';
import { Transform, type TransformCallback } from 'node:stream';
import { errors } from '@agentplatform/contract';
import { sameHash } from './hash-gate.ts';
import { type ChunkSigning, EMPTY_SHA256, mismatch } from './sigv4.ts';
import { tooLarge } from './spool.ts';

export interface AwsChunkedOptions {
  signing: ChunkSigning | undefined;
  trailer: boolean;
  /** Of the decoded body. */
  maxBytes: number;
}

/** A chunk head or trailer line, and all trailer lines together, may take this much. */
const MAX_LINE = 1024;
const MAX_TRAILERS = 16 * 1024;

/**
 * Decodes the `aws-chunked` body of S3 (`STREAMING-…` payloads): `SIZE[;chunk-signature=…] CRLF data CRLF …`, a chunk of
 * size 0, trailer lines. With `signing` each chunk's last part is held back until the chunk's signature agrees, so a
 * forged chunk ends the stream in an error before it is complete. Memory stays flat, regardless of the size that a chunk claims.
 */
export class AwsChunkedDecoder extends Transform {
  /** Trailer lines by lower-case name, such as `x-amz-checksum-crc32`; complete once the stream has ended. */
  readonly trailers = new Map<string, string>();
  readonly #options: AwsChunkedOptions;
  #state: 'head' | 'data' | 'data-end' | 'trailers' | 'done' = 'head';
  #line = '';
  #left = 0;
  #total = 0;
  #held: Buffer | undefined;
  #hash: Hash = createHash('sha256');
  #claimed = '';
  #previous: string;
  #trailerText = '';
  #trailerSigned = false;

  constructor(options: AwsChunkedOptions) {
    super();
    this.#options = options;
    this.#previous = options.signing?.seedSignature ?? '';
  }

  override _transform(part: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      for (let at = 0; at < part.length; ) at = this.#state === 'data' ? this.#data(part, at) : this.#text(part, at);
      done();
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)));
    }
  }

  override _flush(done: TransformCallback): void {
    // Some writers leave out the empty line after the last chunk or trailer.
    const ended = this.#state === 'done' || (this.#state === 'trailers' && this.#line === '' && !this.#needsTrailer());
    done(ended ? null : malformed('it ended early'));
  }

  #needsTrailer(): boolean {
    return this.#options.trailer && this.#options.signing !== undefined && !this.#trailerSigned;
  }

  #data(part: Buffer, at: number): number {
    const piece = part.subarray(at, at + this.#left);
    this.#left -= piece.length;
    if (this.#options.signing) this.#hash.update(piece);
    if (this.#held) this.push(this.#held);
    this.#held = piece;
    if (this.#left === 0) this.#state = 'data-end';
    return at + piece.length;
  }

  #text(part: Buffer, at: number): number {
    if (this.#state === 'done') throw malformed('bytes follow its end');
    const end = part.indexOf(10, at);
    const to = end < 0 ? part.length : end + 1;
    this.#line += part.toString('latin1', at, to);
    if (this.#line.length > MAX_LINE) throw malformed('a line is too long');
    if (end >= 0) {
      if (!this.#line.endsWith('\r\n')) throw malformed('a line must end in CR LF');
      const line = this.#line.slice(0, -2);
      this.#line = '';
      this.#take(line);
    }
    return to;
  }

  #take(line: string): void {
    if (this.#state === 'head') {
      this.#head(line);
    } else if (this.#state === 'trailers') {
      this.#trailer(line);
    } else {
      if (line !== '') throw malformed('a chunk is longer than its size');
      this.#endChunk();
      this.#state = 'head';
    }
  }

  #head(line: string): void {
    const match = /^([0-9a-fA-F]{1,12})(?:;chunk-signature=([0-9a-f]{64}))?$/.exec(line);
    if (!match) throw malformed('a chunk has a bad head');
    const signed = match[2] !== undefined;
    if (signed !== (this.#options.signing !== undefined)) throw malformed('a chunk must be signed as the request says');
    this.#left = Number.parseInt(match[1] ?? '', 16);
    this.#claimed = match[2] ?? '';
    this.#total += this.#left;
    if (this.#total > this.#options.maxBytes) throw tooLarge(this.#options.maxBytes);
    if (this.#left > 0) {
      this.#state = 'data';
      return;
    }
    this.#endChunk();
    this.#state = 'trailers';
  }

  #endChunk(): void {
    const { signing } = this.#options;
    if (signing) {
      this.#verify(signing, 'PAYLOAD', `${EMPTY_SHA256}\n${this.#hash.digest('hex')}`, this.#claimed);
      this.#hash = createHash('sha256');
    }
    if (this.#held) this.push(this.#held);
    this.#held = undefined;
  }

  #trailer(line: string): void {
    const { signing } = this.#options;
    if (line === '') {
      if (this.#needsTrailer()) throw malformed('the signature of its trailer is missing');
      this.#state = 'done';
      return;
    }
    if (!this.#options.trailer) throw malformed('it has a trailer that was not announced');
    const at = line.indexOf(':');
    if (at < 1) throw malformed('a trailer line has no name');
    const name = line.slice(0, at).trim().toLowerCase();
    const value = line.slice(at + 1).trim();
    if (name === 'x-amz-trailer-signature') {
      if (!signing) throw malformed('a trailer is signed in an unsigned body');
      this.#verify(signing, 'TRAILER', hash('sha256', this.#trailerText, 'hex'), value);
      this.#trailerSigned = true;
      return;
    }
    if (this.#trailerSigned) throw malformed('lines follow the signature of its trailer');
    this.#trailerText += `${name}:${value}\n`;
    if (this.#trailerText.length > MAX_TRAILERS) throw malformed('its trailer is too long');
    this.trailers.set(name, value);
  }

  #verify(signing: ChunkSigning, what: 'PAYLOAD' | 'TRAILER', rest: string, claimed: string): void {
    const text = `AWS4-HMAC-SHA256-${what}\n${signing.timestamp}\n${signing.scope}\n${this.#previous}\n${rest}`;
    const actual = createHmac('sha256', signing.key).update(text).digest('hex');
    if (!sameHash(actual, claimed)) throw mismatch();
    this.#previous = actual;
  }
}

function malformed(what: string): Error {
  return errors.validation(`The aws-chunked body is malformed: ${what}.`);
}
