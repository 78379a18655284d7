export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** Pixels of a PNG, GIF or JPEG by its header; undefined if it is none of them or broken. */
export function imageSize(bytes: Uint8Array): ImageSize | undefined {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = data.subarray(0, 8).toString('latin1');
  if (start === '\x89PNG\r\n\x1a\n') {
    if (data.length < 33 || data.toString('latin1', 12, 16) !== 'IHDR') return undefined;
    return nonEmpty(data.readUInt32BE(16), data.readUInt32BE(20));
  }
  if (/^GIF8[79]a/.test(start))
    return data.length < 10 ? undefined : nonEmpty(data.readUInt16LE(6), data.readUInt16LE(8));
  return start.startsWith('\xff\xd8') ? jpegSize(data) : undefined;
}

function jpegSize(data: Buffer): ImageSize | undefined {
  let at = 2;
  while (at + 9 <= data.length && data[at] === 0xff) {
    const marker = data[at + 1] ?? 0;
    // SOF0 to SOF15 hold the size; C4, C8 and CC are tables that share their range.
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      return nonEmpty(data.readUInt16BE(at + 7), data.readUInt16BE(at + 5));
    }
    const length = data.readUInt16BE(at + 2);
    if (length < 2) return undefined;
    at += 2 + length;
  }
  return undefined;
}

function nonEmpty(width: number, height: number): ImageSize | undefined {
  return width > 0 && height > 0 ? { width, height } : undefined;
}
