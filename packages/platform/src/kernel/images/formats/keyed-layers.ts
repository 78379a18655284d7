import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../../durable-file.ts';
import { errorCode, orMissing } from '../../system-error.ts';
import { digestOf, isDigest } from '../digest.ts';
import { ImageError } from '../images.ts';
import { type Descriptor, isObject } from '../manifest.ts';
import { MEDIA } from '../media-types.ts';
import type { BlobInfo } from '../store/blob-store.ts';
import type { ImageStore } from '../store/image-store.ts';
import { linkOrCopy } from '../store/link-or-copy.ts';
import type { SharedFolder } from '../store/shared-folder.ts';
import { type LayerEntry, writeLayer } from './layer.ts';

/** Changes whenever the same entries would give other bytes. */
const RECIPE = '2';
const CONTENT = 'layer.tar';
const RECORD = 'layer.json';

/** Layers that are known by what they are made of, so that each is made once: for a data directory, or for all that share a folder. */
export class KeyedLayers {
  readonly #store: ImageStore;
  readonly #records: string;
  readonly #shared: SharedFolder | undefined;

  constructor(store: ImageStore, shared: SharedFolder | undefined) {
    this.#store = store;
    this.#records = join(store.dir, 'layers');
    this.#shared = shared;
  }

  /** The layer of `entries`, which are only asked for when it has to be made. The same `key` must always mean the same entries. */
  async make(
    key: string,
    entries: () => Promise<readonly LayerEntry[]> | readonly LayerEntry[],
    signal?: AbortSignal,
  ): Promise<Descriptor> {
    const name = digestOf(Buffer.from(JSON.stringify([RECIPE, process.arch, key]))).slice('sha256:'.length);
    const file = join(this.#records, `${name}.json`);
    const known = readInfo(await orMissing(readFile(file, 'utf8')));
    if (known && (await this.#store.blobs.has(known.digest, known.size))) return described(known);
    let info = await this.#take(name, signal);
    if (!info) {
      info = await writeLayer(this.#store.blobs, await entries(), signal);
      await this.#give(name, info);
    }
    await mkdir(this.#records, { recursive: true, mode: 0o700 });
    await replaceFile(file, JSON.stringify({ digest: info.digest, size: info.size }), this.#store.temp.next());
    return described(info);
  }

  /** Forgets layers that the store no longer has. */
  async tidy(): Promise<void> {
    for (const name of (await orMissing(readdir(this.#records))) ?? []) {
      const file = join(this.#records, name);
      const known = readInfo(await orMissing(readFile(file, 'utf8')));
      if (!known || !(await this.#store.blobs.has(known.digest, known.size))) await rm(file, { force: true });
    }
  }

  /** A shared layer is hashed as it comes into the store: one that was altered is not taken, and removed. */
  async #take(name: string, signal: AbortSignal | undefined): Promise<BlobInfo | undefined> {
    const entry = await this.#shared?.find(name);
    if (entry === undefined) return undefined;
    try {
      const info = readInfo(await readFile(join(entry, RECORD), 'utf8'));
      if (!info) throw new ImageError('corrupt', `${entry} says nothing of its layer.`);
      if (!(await this.#store.blobs.has(info.digest, info.size)))
        await this.#store.blobs.link(join(entry, CONTENT), info, signal);
      return info;
    } catch (error) {
      signal?.throwIfAborted();
      const gone = errorCode(error) === 'ENOENT' || (error instanceof ImageError && error.reason === 'corrupt');
      if (!gone) throw error;
      await this.#shared?.drop(name);
      return undefined;
    }
  }

  async #give(name: string, { digest, size }: BlobInfo): Promise<void> {
    await this.#shared?.add(name, async (dir) => {
      await linkOrCopy(this.#store.blobs.path(digest), join(dir, CONTENT));
      await writeFile(join(dir, RECORD), JSON.stringify({ digest, size }), { flush: true });
    });
  }
}

function described({ digest, size }: BlobInfo): Descriptor {
  return { mediaType: MEDIA.ociLayerTar, digest, size };
}

function readInfo(text: string | undefined): BlobInfo | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '');
    if (!isObject(value) || typeof value.digest !== 'string' || !isDigest(value.digest)) return undefined;
    return typeof value.size === 'number' ? { digest: value.digest, size: value.size } : undefined;
  } catch {
    return undefined;
  }
}
