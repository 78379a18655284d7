const HEADER = 8;

export interface Frame {
  stream: 'stdout' | 'stderr';
  bytes: Buffer;
  /** Whether the frame ends with these bytes. */
  last: boolean;
}

/** Takes the two outputs of a container apart: frames of one byte for the stream, three of nothing, four for the length (Engine API, "attach"). */
export class FrameReader {
  #header = Buffer.alloc(HEADER);
  #got = 0;
  #left = 0;

  /** What of the frames is in `chunk`, which may begin and end anywhere. */
  push(chunk: Buffer): Frame[] {
    const frames: Frame[] = [];
    for (let at = 0; at < chunk.length; ) {
      if (this.#left === 0) {
        const taken = chunk.copy(this.#header, this.#got, at, at + HEADER - this.#got);
        this.#got += taken;
        at += taken;
        if (this.#got < HEADER) break;
        this.#left = this.#header.readUInt32BE(4);
        this.#got = 0;
        continue;
      }
      const bytes = chunk.subarray(at, at + this.#left);
      this.#left -= bytes.length;
      frames.push({ stream: this.#header[0] === 2 ? 'stderr' : 'stdout', bytes, last: this.#left === 0 });
      at += bytes.length;
    }
    return frames;
  }
}
