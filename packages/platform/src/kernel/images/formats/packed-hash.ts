import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { ImageError } from '../images.ts';
import type { ZipItem } from './zip.ts';

/** Of a local header without name and extra field, whose lengths are at the two places. */
const HEADER = { signature: 0x04034b50, bytes: 30, name: 26, extra: 28 };
const WINDOW_BYTES = 1024 * 1024;

/**
 * A SHA-256 of items of the zip at `path`: of their paths, kinds, modes, sizes, checksums and bytes as they are packed, which are not unpacked for it.
 * The same hash means the same items; the same items packed in another way have another. Throws `ImageError` for a zip that is not whole.
 */
export async function packedHash(path: string, items: readonly ZipItem[]): Promise<string> {
  const hash = createHash('sha256');
  await using file = await open(path);
  const window = new Window(file);
  const files: Extract<ZipItem, { type: 'file' }>[] = [];
  for (const item of items) {
    if (item.type === 'file') files.push(item);
    else hash.update(`${JSON.stringify(item)}\n`);
  }
  // As they lie in the zip: it is read once, from front to back.
  for (const { open: _, offset, ...item } of files.toSorted((one, other) => one.offset - other.offset)) {
    hash.update(`${JSON.stringify(item)}\n`);
    const header = await window.read(offset, HEADER.bytes);
    if (header.readUInt32LE(0) !== HEADER.signature) throw notWhole();
    const start = offset + HEADER.bytes + header.readUInt16LE(HEADER.name) + header.readUInt16LE(HEADER.extra);
    for (let at = start; at < start + item.packedSize; at += WINDOW_BYTES)
      hash.update(await window.read(at, Math.min(WINDOW_BYTES, start + item.packedSize - at)));
  }
  return hash.digest('hex');
}

/** The part of a file that was read last. */
class Window {
  readonly #file: FileHandle;
  readonly #buffer = Buffer.alloc(WINDOW_BYTES);
  #start = 0;
  #length = 0;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** At most `WINDOW_BYTES`, which are good until the next call. */
  async read(at: number, length: number): Promise<Buffer> {
    if (at < this.#start || at + length > this.#start + this.#length) {
      this.#start = at;
      this.#length = (await this.#file.read(this.#buffer, 0, WINDOW_BYTES, at)).bytesRead;
      if (length > this.#length) throw notWhole();
    }
    return this.#buffer.subarray(at - this.#start, at - this.#start + length);
  }
}

function notWhole(): ImageError {
  return new ImageError('invalid', 'The zip cannot be used: it is not whole.');
}
