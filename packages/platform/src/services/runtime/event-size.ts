/** Where an event of a stream of server-sent events ends, at an empty line; lines end as the sender likes (WHATWG HTML, 9.2.6). */
const ENDS = ['\n\n', '\n\r\n', '\r\r'].map((end) => Buffer.from(end));
/** Bytes that can be the beginning of the longest end. */
const KEPT = 2;

/** Watches the size of events that pass in parts. */
export class EventSize {
  readonly #max: number;
  #bytes = 0;
  #last = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#max = maxBytes;
  }

  /** Takes the next part; false once an event has not ended within the allowed bytes. A part itself may be no larger than they are. */
  take(part: Buffer): boolean {
    const end = lastEnd(part);
    if (end > 0) this.#bytes = part.length - end;
    else {
      this.#bytes += part.length;
      // One that began with the part before.
      const seam = lastEnd(Buffer.concat([this.#last, part.subarray(0, KEPT)]));
      if (seam > this.#last.length) this.#bytes = part.length - (seam - this.#last.length);
    }
    this.#last = Buffer.concat([this.#last, part.subarray(-KEPT)]).subarray(-KEPT);
    return this.#bytes <= this.#max;
  }
}

/** Index behind the last end of an event, 0 without one. */
function lastEnd(part: Buffer): number {
  let found = 0;
  for (const end of ENDS) {
    const at = part.lastIndexOf(end);
    if (at >= 0) found = Math.max(found, at + end.length);
  }
  return found;
}
