import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { syncDirectory } from '../../durable-file.ts';
import { SingleFlight } from '../../single-flight.ts';
import { orMissing } from '../../system-error.ts';
import { digestOf, hexOf, isDigest } from '../digest.ts';
import { ImageError } from '../images.ts';
import { describeBytes } from '../limits.ts';
import { linkOrCopy } from './link-or-copy.ts';
import { storageError } from './storage-error.ts';
import type { TempFiles } from './temp-files.ts';
import { writeAll } from './write-all.ts';

export interface BlobInfo {
  digest: string;
  /** Bytes. */
  size: number;
}

/** What is known of bytes before they arrive. `maxBytes` bounds them when `size` does not. */
export interface Expected {
  digest?: string;
  size?: number;
  maxBytes: number;
  signal?: AbortSignal;
}

/** Content-addressed files, `blobs/sha256/<hex>` as in an OCI image layout. A blob that is there was verified when it came. */
export class BlobStore {
  readonly #dir: string;
  readonly #temp: TempFiles;
  readonly #arriving = new SingleFlight<void>();

  constructor(dir: string, temp: TempFiles) {
    this.#dir = join(dir, 'blobs', 'sha256');
    this.#temp = temp;
  }

  async init(): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
  }

  path(digest: string): string {
    return join(this.#dir, hexOf(digest));
  }

  /** Size in bytes, undefined when the blob is not there. */
  async size(digest: string): Promise<number | undefined> {
    return (await orMissing(stat(this.path(digest))))?.size;
  }

  /** Whether the blob is there whole, judged by its size; its hash is checked whenever it is read. */
  async has(digest: string, size?: number): Promise<boolean> {
    const found = await this.size(digest);
    return found !== undefined && (size === undefined || found === size);
  }

  /**
   * Stores bytes as they come, hashing them on the way. Throws `ImageError`: `corrupt` when they are not what was
   * expected, `too-large`, `storage`; nothing is left behind then.
   */
  async put(source: AsyncIterable<Uint8Array>, expected: Expected): Promise<BlobInfo> {
    const path = this.#temp.next();
    const most = expected.size ?? expected.maxBytes;
    try {
      const hash = createHash('sha256');
      let size = 0;
      const file = await open(path, 'wx', 0o600);
      try {
        for await (const chunk of source) {
          expected.signal?.throwIfAborted();
          size += chunk.length;
          if (size > most) throw tooLong(expected, most);
          hash.update(chunk);
          await writeAll(file, chunk);
        }
        await file.sync();
      } finally {
        await file.close();
      }
      const digest = `sha256:${hash.digest('hex')}`;
      if (expected.size !== undefined && size !== expected.size) {
        throw new ImageError(
          'corrupt',
          `${expected.digest ?? 'A blob'} ended after ${size} of ${expected.size} bytes.`,
        );
      }
      if (expected.digest !== undefined && digest !== expected.digest) {
        throw new ImageError(
          'corrupt',
          `What came as ${expected.digest} is ${digest}: the content was altered on its way.`,
        );
      }
      await this.adopt(path, digest);
      return { digest, size };
    } catch (error) {
      await rm(path, { force: true });
      throw storageError(error);
    }
  }

  /**
   * Brings in a synced file that stays where it is, as a hard link where that can be; it is hashed on the way. Nobody may write
   * into the file afterwards. Throws `ImageError` `corrupt` when it is not what was expected.
   */
  async link(file: string, expected: BlobInfo, signal?: AbortSignal): Promise<void> {
    const path = this.#temp.next();
    try {
      await linkOrCopy(file, path);
      const hash = createHash('sha256');
      let size = 0;
      for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) {
        signal?.throwIfAborted();
        size += chunk.length;
        hash.update(chunk);
      }
      if (size !== expected.size || `sha256:${hash.digest('hex')}` !== expected.digest)
        throw new ImageError('corrupt', `${file} is not ${expected.digest}.`);
      await this.adopt(path, expected.digest);
    } finally {
      await rm(path, { force: true });
    }
  }

  /** Moves a finished, synced file, whose hash the caller has computed, into the store. */
  async adopt(file: string, digest: string): Promise<void> {
    const path = this.path(digest);
    await rename(file, path);
    await syncDirectory(dirname(path));
  }

  /** Stores a small document. */
  async putBytes(bytes: Uint8Array): Promise<BlobInfo> {
    const digest = digestOf(bytes);
    if (!(await this.has(digest, bytes.length)))
      await this.put(once(bytes), { digest, size: bytes.length, maxBytes: bytes.length });
    return { digest, size: bytes.length };
  }

  /** Brings a blob in once for all who want it at the same time; does nothing when it is there whole. */
  async ensure(
    wanted: BlobInfo,
    fetch: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
    signal?: AbortSignal,
  ): Promise<void> {
    if (await this.has(wanted.digest, wanted.size)) return;
    await this.#arriving.run(
      wanted.digest,
      async (shared) => {
        await this.put(fetch(shared), { ...wanted, maxBytes: wanted.size, signal: shared });
      },
      signal,
    );
  }

  /** Reads a document of at most `maxBytes` and checks its hash. Throws `not-found`, `too-large`, `corrupt`. */
  async readBytes(digest: string, maxBytes: number): Promise<Buffer> {
    const size = await this.size(digest);
    if (size === undefined) throw new ImageError('not-found', `${digest} is not in the image store.`);
    if (size > maxBytes)
      throw new ImageError(
        'too-large',
        `${digest} has ${describeBytes(size)}, at most ${describeBytes(maxBytes)} are read.`,
      );
    const bytes = await readFile(this.path(digest));
    if (digestOf(bytes) !== digest) throw await this.corrupt(digest);
    return bytes;
  }

  /** The bytes from `start` to `end` inclusive, as they are on disk. */
  read(
    digest: string,
    range: { start?: number; end?: number } = {},
  ): AsyncIterable<Uint8Array> & NodeJS.ReadableStream {
    return createReadStream(this.path(digest), { ...range, highWaterMark: 256 * 1024 });
  }

  /** Takes a blob whose bytes are not its digest's out of the store, so that the next fetch repairs it; returns the error. */
  async corrupt(digest: string): Promise<ImageError> {
    await rm(this.path(digest), { force: true });
    return new ImageError(
      'corrupt',
      `${digest} was damaged in the image store and has been removed from it; pull, push or deploy the image again to repair it.`,
    );
  }

  /** Marks a blob as just used, so that a collection that runs meanwhile leaves it. */
  async touch(digest: string, now: number): Promise<void> {
    await orMissing(utimes(this.path(digest), now / 1000, now / 1000));
  }

  async remove(digest: string): Promise<void> {
    await rm(this.path(digest), { force: true });
  }

  async *list(): AsyncGenerator<BlobInfo & { modifiedAt: number }> {
    for (const name of await readdir(this.#dir)) {
      const digest = `sha256:${name}`;
      const info = isDigest(digest) ? await orMissing(stat(join(this.#dir, name))) : undefined;
      if (info) yield { digest, size: info.size, modifiedAt: info.mtimeMs };
    }
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function tooLong(expected: Expected, most: number): ImageError {
  if (expected.size === undefined)
    return new ImageError('too-large', `The content is larger than ${describeBytes(most)}.`);
  return new ImageError('corrupt', `${expected.digest ?? 'A blob'} is longer than the ${most} bytes it should have.`);
}
