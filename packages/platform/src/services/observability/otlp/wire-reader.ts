/** What is no protobuf message. */
export class BrokenMessageError extends Error {
  override name = 'BrokenMessageError';
}

/** One field of a message: its number, and its value by the wire type that it has (protobuf encoding, wire types 0, 1, 2 and 5). */
export type Field =
  | { number: number; kind: 'varint' | 'fixed64'; value: bigint }
  | { number: number; kind: 'fixed32'; value: number }
  | { number: number; kind: 'bytes'; value: Buffer };

/** The fields of a message in their order; nothing is copied. Throws `BrokenMessageError` for what is cut, or of a wire type that nobody writes any more. */
export function* fieldsOf(message: Buffer): Generator<Field> {
  for (let at = 0; at < message.length; ) {
    const tag = varint(message, at);
    at = tag.end;
    const number = Number(tag.value >> 3n);
    const type = Number(tag.value & 7n);
    if (type === 0) {
      const { value, end } = varint(message, at);
      at = end;
      yield { number, kind: 'varint', value };
    } else if (type === 1) {
      yield { number, kind: 'fixed64', value: within(message, at, 8).readBigUInt64LE(0) };
      at += 8;
    } else if (type === 2) {
      const { value: length, end } = varint(message, at);
      if (length > BigInt(message.length)) throw new BrokenMessageError('a field is longer than its message');
      yield { number, kind: 'bytes', value: within(message, end, Number(length)) };
      at = end + Number(length);
    } else if (type === 5) {
      yield { number, kind: 'fixed32', value: within(message, at, 4).readUInt32LE(0) };
      at += 4;
    } else throw new BrokenMessageError(`there is no wire type ${type}`);
  }
}

function within(message: Buffer, at: number, length: number): Buffer {
  if (at + length > message.length) throw new BrokenMessageError('a field is cut');
  return message.subarray(at, at + length);
}

function varint(message: Buffer, from: number): { value: bigint; end: number } {
  let value = 0n;
  for (let at = from, shift = 0n; shift < 70n; at += 1, shift += 7n) {
    const byte = message[at];
    if (byte === undefined) throw new BrokenMessageError('a number is cut');
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return { value: BigInt.asUintN(64, value), end: at + 1 };
  }
  throw new BrokenMessageError('a number is longer than ten bytes');
}
