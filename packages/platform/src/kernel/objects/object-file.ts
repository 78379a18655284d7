import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { number, object, record, type Shape, storedText, text, wire } from '../stored-shape.ts';
import type { Checksum } from './checksums.ts';
import { isMissing, ObjectError } from './errors.ts';
import type { ObjectInfo } from './object-store.ts';

/*
 * One object in one file: the content, then what is known of it as JSON, then 4 bytes with the length of the JSON
 * (little-endian) and 8 bytes of magic. Content and description cannot part, and a range is a range of the file.
 */
const MAGIC = Buffer.from('APOBJ\x00\x01\n');
const FOOTER_BYTES = 4 + MAGIC.length;
const MAX_JSON_BYTES = 64 * 1024;

interface Description {
  size: number;
  etag: string;
  lastModified: number;
  contentType?: string;
  headers: Record<string, string>;
  metadata: Record<string, string>;
  checksum?: Checksum;
}

const DESCRIPTION: Shape<Description> = object(
  { size: number, etag: text, lastModified: number, headers: record(text), metadata: record(text) },
  { contentType: text, checksum: wire<Checksum>() },
);

/** Writes parts to a file and counts and hashes them. */
export class ObjectFileWriter {
  readonly #file: FileHandle;
  readonly #md5: Hash = createHash('md5');
  readonly #grow: ((bytes: number) => void) | undefined;
  #size = 0;

  /** `grow` is told before so many bytes more are written, and may throw. */
  constructor(file: FileHandle, grow?: (bytes: number) => void) {
    this.#file = file;
    this.#grow = grow;
  }

  get size(): number {
    return this.#size;
  }

  async write(body: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const part of body) {
      this.#grow?.(part.length);
      this.#md5.update(part);
      for (let written = 0; written < part.length; ) {
        const { bytesWritten } = await this.#file.write(part, written, part.length - written, this.#size + written);
        written += bytesWritten;
      }
      this.#size += part.length;
    }
  }

  /** MD5 of all that was written, in hex; once. */
  md5(): string {
    return this.#md5.digest('hex');
  }

  /** Adds the description, and brings everything to the disk. */
  async describe(info: Omit<ObjectInfo, 'key' | 'size'>): Promise<void> {
    const { lastModified, ...rest } = info;
    const description: Description = { ...rest, size: this.#size, lastModified: lastModified.getTime() };
    const json = Buffer.from(JSON.stringify(description));
    if (json.length > MAX_JSON_BYTES)
      throw new ObjectError('InvalidRequest', 'The metadata of the object is too large.');
    const length = Buffer.alloc(4);
    length.writeUInt32LE(json.length);
    await this.#file.write(Buffer.concat([json, length, MAGIC]), 0, undefined, this.#size);
    await this.#file.datasync();
  }
}

/** What is known of the object in an open file. Throws when the file is no object. */
export async function readInfo(file: FileHandle, key: string): Promise<ObjectInfo> {
  const { size } = await file.stat();
  const tail = Buffer.alloc(Math.min(size, FOOTER_BYTES + 1024));
  await file.read(tail, 0, tail.length, size - tail.length);
  const footer = tail.subarray(-FOOTER_BYTES);
  const length = tail.length < FOOTER_BYTES || !footer.subarray(4).equals(MAGIC) ? -1 : footer.readUInt32LE(0);
  if (length < 0 || length > MAX_JSON_BYTES || length + FOOTER_BYTES > size) throw damaged(key);
  let json = tail.subarray(0, -FOOTER_BYTES).subarray(-length);
  if (json.length < length) {
    json = Buffer.alloc(length);
    await file.read(json, 0, length, size - FOOTER_BYTES - length);
  }
  const description = storedText(DESCRIPTION, json.toString());
  if (description.size !== size - FOOTER_BYTES - length) throw damaged(key);
  return { ...description, key, lastModified: new Date(description.lastModified) };
}

/** Undefined when there is no such file. */
export async function openObject(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function damaged(key: string): Error {
  return new ObjectError('InternalError', `The file of the object ${key} is damaged.`);
}
