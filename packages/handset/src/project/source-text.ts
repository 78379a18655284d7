import { ProblemError } from '../problem.ts';

/** Decode a source as UTF-8, dropping a byte order mark; throws `not-utf8` with the line of the first bad byte. */
export function decodeSource(bytes: Uint8Array, file: string): string {
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)) {
    throw new ProblemError('not-utf8', { file, message: 'The file is encoded as UTF-16.' });
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    const offset = firstInvalidByte(bytes);
    const line = 1 + countNewlines(bytes, offset);
    const value = (bytes[offset] ?? 0).toString(16).padStart(2, '0');
    throw new ProblemError('not-utf8', { file, line, message: `Byte 0x${value} at offset ${offset} is not UTF-8.` });
  }
}

function countNewlines(bytes: Uint8Array, end: number): number {
  let count = 0;
  for (let i = 0; i < end; i += 1) if (bytes[i] === 0x0a) count += 1;
  return count;
}

/** Offset of the first byte that starts no valid UTF-8 sequence: the longest decodable prefix, found by bisection. */
function firstInvalidByte(bytes: Uint8Array): number {
  const valid = (end: number, stream: boolean): boolean => {
    try {
      new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, end), { stream });
      return true;
    } catch {
      return false;
    }
  };
  let low = 0;
  let high = bytes.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (valid(middle, true)) low = middle;
    else high = middle - 1;
  }
  // The prefix may end with the start of a sequence that does not go on: the fault is where it starts.
  while (low > 0 && !valid(low, false)) low -= 1;
  return low;
}
