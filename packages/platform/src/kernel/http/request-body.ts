import type { Readable } from 'node:stream';
import type { GatedBody } from '../auth/index.ts';

/** A verified request body for a service that takes it as the stream that the contract promises: whole in memory, or on its way. */
export class RequestBody implements AsyncIterable<Uint8Array> {
  readonly content: Buffer | Readable;
  /** In bytes, as the client declared it; undefined for a body sent in chunks whose end is still to come. */
  readonly length: number | undefined;

  constructor(gated: GatedBody) {
    this.content = gated.kind === 'buffer' ? gated.data : gated.stream;
    this.length = gated.kind === 'buffer' ? gated.data.length : gated.length;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    if (Buffer.isBuffer(this.content)) yield this.content;
    else yield* this.content;
  }
}
