/** A request body that is in memory as a whole; handed to a service as the stream that the contract promises, without making one. */
export class WholeBody implements AsyncIterable<Uint8Array> {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    if (this.bytes.length > 0) yield this.bytes;
  }
}
