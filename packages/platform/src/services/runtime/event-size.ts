/** Where an event of a stream of server-sent events ends: at an empty line, and a line at LF, CR or both (WHATWG HTML, 9.2.6). */
const ENDS = ['\n\n', '\n\r', '\r\r'].map((end) => Buffer.from(end));
/** Bytes that can be the beginning of an end. */
const KEPT = 1;

/** Watches the size of events that pass in parts. */
export class EventSize {
  readonly #max: number;
  #bytes = 0;
  #last = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#max = maxBytes;
  }

  /**
   * Takes the next part; false once an event is larger than allowed. One that begins and ends within a part is not looked at, for a part
   * is what one read brings: hardly more than 64 KiB.
   */
  take(part: Buffer): boolean {
    // With the end of the part before, so that no end lies between the two.
    const seen = Buffer.concat([this.#last, part]);
    const last = Math.max(...ENDS.map((end) => seen.lastIndexOf(end)));
    const known = this.#last.length;
    const open = this.#bytes;
    this.#bytes = last < 0 ? open + part.length : seen.length - (last + 2);
    this.#last = seen.subarray(-KEPT);
    if (open + part.length <= this.#max) return true;
    const first = ENDS.map((end) => seen.indexOf(end)).filter((at) => at >= 0);
    const ended = first.length === 0 ? open + part.length : open - known + Math.min(...first) + 2;
    return Math.max(ended, this.#bytes) <= this.#max;
  }
}
