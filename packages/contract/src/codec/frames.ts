import type { StreamingBlob } from '../wire-types.ts';

/** Largest frame that is taken in; the vendor's own limit is 16 MB. */
const maxFrame = 16 * 1024 * 1024;
/** Prelude of 12 bytes and the checksum at the end. */
const minFrame = 16;

/** Cuts a byte stream into event-stream frames; throws on a length that no frame can have and on bytes left over at the end. */
export async function* frames(bytes: StreamingBlob): AsyncIterable<Uint8Array> {
  let parts: Uint8Array[] = [];
  let held = 0;
  let wanted = 4;
  for await (const part of bytes) {
    parts.push(part);
    held += part.byteLength;
    // Parts are joined only when a frame may be complete, so a large frame in small parts is not copied again and again.
    while (held >= wanted) {
      const pending = parts.length === 1 && parts[0] !== undefined ? Buffer.from(parts[0]) : Buffer.concat(parts);
      const length = pending.readUInt32BE(0);
      if (length < minFrame || length > maxFrame) throw new Error(`An event cannot have ${length} bytes`);
      const complete = held >= length;
      if (complete) yield pending.subarray(0, length);
      const rest = complete ? pending.subarray(length) : pending;
      parts = rest.length === 0 ? [] : [rest];
      held = rest.length;
      wanted = complete ? 4 : length;
    }
  }
  if (held > 0) throw new Error('The event stream ends within an event');
}
