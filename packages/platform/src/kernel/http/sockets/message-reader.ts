/** Longest message that is read, in bytes; longer ones are passed over. */
const MAX_BYTES = 64 * 2 ** 10;

/**
 * Reads the texts that a client sends on a WebSocket whose frames somebody else passes on and checks (`FrameScanner`): whole messages, unmasked,
 * those that are not too long.
 */
export class MessageReader {
  readonly #onText: (text: string) => void;
  #head: Buffer = Buffer.alloc(0);
  #frame: { opcode: number; final: boolean; mask: Buffer | undefined; length: number; at: number } | undefined;
  #parts: Buffer[] = [];
  #bytes = 0;
  #isText = false;

  constructor(onText: (text: string) => void) {
    this.#onText = onText;
  }

  take(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (!this.#frame) {
        const bytes = Buffer.concat([this.#head, rest]);
        const size = headSize(bytes);
        if (size === undefined || bytes.length < size) {
          this.#head = bytes;
          return;
        }
        this.#begin(bytes, size);
        rest = bytes.subarray(size);
      }
      const frame = this.#frame;
      // An empty one is over already.
      if (!frame) continue;
      const part = rest.subarray(0, frame.length - frame.at);
      this.#collect(part);
      frame.at += part.length;
      rest = rest.subarray(part.length);
      if (frame.at === frame.length) this.#end();
    }
  }

  #begin(bytes: Buffer, size: number): void {
    this.#head = Buffer.alloc(0);
    const [first = 0, second = 0] = bytes;
    const masked = (second & 0x80) !== 0;
    const short = second & 0x7f;
    const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    const mask = masked ? Buffer.from(bytes.subarray(size - 4, size)) : undefined;
    this.#frame = { opcode: first & 0x0f, final: (first & 0x80) !== 0, mask, length, at: 0 };
    if (this.#frame.opcode === 1 || this.#frame.opcode === 2) {
      this.#isText = this.#frame.opcode === 1;
      [this.#parts, this.#bytes] = [[], 0];
    }
    if (length === 0) this.#end();
  }

  #collect(part: Buffer): void {
    const frame = this.#frame;
    // Control frames are no part of a message.
    if (!frame || frame.opcode >= 8 || !this.#isText) return;
    this.#bytes += part.length;
    if (this.#bytes > MAX_BYTES) {
      this.#parts = [];
      return;
    }
    const plain = Buffer.from(part);
    const { mask, at } = frame;
    if (mask) for (let i = 0; i < plain.length; i += 1) plain[i] = (plain[i] ?? 0) ^ (mask[(at + i) % 4] ?? 0);
    this.#parts.push(plain);
  }

  #end(): void {
    const frame = this.#frame;
    this.#frame = undefined;
    if (!frame?.final || frame.opcode >= 8 || !this.#isText || this.#bytes > MAX_BYTES) return;
    this.#onText(Buffer.concat(this.#parts).toString('utf8'));
  }
}

/** Bytes of the head of a frame (RFC 6455, 5.2); undefined where that cannot be said yet. */
function headSize(bytes: Buffer): number | undefined {
  const second = bytes[1];
  if (second === undefined) return undefined;
  const length = second & 0x7f;
  return 2 + (length === 126 ? 2 : length === 127 ? 8 : 0) + ((second & 0x80) === 0 ? 0 : 4);
}
