import { crc32 } from 'node:zlib';
import { RecordTooLargeError } from './errors.ts';

/*
 * One record in a segment file, integers little-endian:
 *   4 bytes  length of the body
 *   4 bytes  CRC-32 of the length and the body (Node computes this one natively, and no faster code is at hand)
 *   body:    8 bytes sequence number, 1 byte length of the sink's name, the name, the record as JSON
 */
const HEADER_BYTES = 8;
const BODY_PREFIX_BYTES = 9;

/** Largest body of a frame, in bytes. */
export const MAX_BODY_BYTES = 1 << 20;

export interface Frame {
  seq: number;
  sink: string;
  /** The record, not yet parsed. */
  json: string;
}

export type Decoded =
  | { kind: 'frame'; frame: Frame; end: number }
  /** More bytes are needed: `bytes` from the start of this frame. */
  | { kind: 'short'; bytes: number }
  | { kind: 'broken'; reason: string };

/** Throws `RecordTooLargeError` over `MAX_BODY_BYTES`. */
export function encodeFrame(frame: Frame): Buffer {
  const name = Buffer.from(frame.sink);
  if (name.length > 255) throw new Error(`the sink name ${frame.sink} is over 255 bytes`);
  const jsonBytes = Buffer.byteLength(frame.json);
  const length = BODY_PREFIX_BYTES + name.length + jsonBytes;
  if (length > MAX_BODY_BYTES) throw new RecordTooLargeError(length, MAX_BODY_BYTES);
  const buffer = Buffer.allocUnsafe(HEADER_BYTES + length);
  buffer.writeUInt32LE(length, 0);
  buffer.writeBigUInt64LE(BigInt(frame.seq), HEADER_BYTES);
  buffer.writeUInt8(name.length, HEADER_BYTES + 8);
  name.copy(buffer, HEADER_BYTES + BODY_PREFIX_BYTES);
  buffer.write(frame.json, HEADER_BYTES + BODY_PREFIX_BYTES + name.length);
  buffer.writeUInt32LE(checksum(buffer, 0, HEADER_BYTES + length), 4);
  return buffer;
}

/** Reads the frame that starts at `start`. Never throws, for any bytes. */
export function decodeFrame(buffer: Buffer, start: number): Decoded {
  const available = buffer.length - start;
  if (available < HEADER_BYTES) return { kind: 'short', bytes: HEADER_BYTES };
  const length = buffer.readUInt32LE(start);
  if (length < BODY_PREFIX_BYTES || length > MAX_BODY_BYTES) {
    return { kind: 'broken', reason: `a length of ${length} bytes` };
  }
  const end = start + HEADER_BYTES + length;
  if (end > buffer.length) return { kind: 'short', bytes: HEADER_BYTES + length };
  if (buffer.readUInt32LE(start + 4) !== checksum(buffer, start, end))
    return { kind: 'broken', reason: 'a wrong checksum' };
  const seq = Number(buffer.readBigUInt64LE(start + HEADER_BYTES));
  const nameStart = start + HEADER_BYTES + BODY_PREFIX_BYTES;
  const nameEnd = nameStart + buffer.readUInt8(nameStart - 1);
  if (nameEnd > end || !Number.isSafeInteger(seq)) return { kind: 'broken', reason: 'an impossible header' };
  const sink = buffer.toString('utf8', nameStart, nameEnd);
  return { kind: 'frame', frame: { seq, sink, json: buffer.toString('utf8', nameEnd, end) }, end };
}

/** Over everything but the checksum's own four bytes. */
function checksum(buffer: Buffer, start: number, end: number): number {
  return crc32(buffer.subarray(start + HEADER_BYTES, end), crc32(buffer.subarray(start, start + 4)));
}
