import { createHash, type Hash, randomUUID } from 'node:crypto';
import { open, rm, writeFile } from 'node:fs/promises';
import type { Clock } from '../../kernel/clock.ts';
import {
  type BlobInfo,
  describeBytes,
  ImageError,
  type ImageStore,
  type ImageUsage,
  storageError,
  writeAll,
} from '../../kernel/images/index.ts';
import { isDiskFull } from '../../kernel/system-error.ts';
import { RegistryError } from './errors.ts';

export interface UploadLimits {
  /** Bytes of one blob. */
  uploadBytes: number;
  /** Uploads that one account may have open. */
  uploadsPerAccount: number;
  uploads: number;
  /** An upload of which nothing was heard for this long is removed, milliseconds. */
  uploadIdleMs: number;
  /** A body that brings nothing for this long is given up, milliseconds. */
  stallMs: number;
}

export interface Upload {
  readonly id: string;
  readonly account: string;
  /** Who began it. */
  readonly principal: string;
  readonly name: string;
  size: number;
}

interface Open extends Upload {
  path: string;
  hash: Hash;
  busy: boolean;
  /** It counts among what its account keeps. */
  kept: boolean;
  cancelExpiry: () => void;
}

export interface UploadDeps {
  store: ImageStore;
  clock: Clock;
  usage: ImageUsage;
  /** Throws while the disk has no room for anything new. */
  needRoom(): void;
}

/** Blobs on their way in; what has arrived of them counts to the quota of their account. They live in memory and a temporary file: a restart of the server ends them, the client begins again. */
export class Uploads {
  readonly #store: ImageStore;
  readonly #clock: Clock;
  readonly #limits: UploadLimits;
  readonly #usage: ImageUsage;
  readonly #needRoom: () => void;
  readonly #open = new Map<string, Open>();

  constructor({ store, clock, usage, needRoom }: UploadDeps, limits: UploadLimits) {
    this.#store = store;
    this.#usage = usage;
    this.#clock = clock;
    this.#needRoom = needRoom;
    this.#limits = limits;
  }

  async begin({ account, principal, name }: Omit<Upload, 'id' | 'size'>): Promise<Upload> {
    const own = [...this.#open.values()].filter((upload) => upload.account === account).length;
    if (own >= this.#limits.uploadsPerAccount || this.#open.size >= this.#limits.uploads) {
      throw new RegistryError('TOOMANYREQUESTS', 'too many uploads at once; finish or cancel some');
    }
    const path = this.#store.temp.next();
    const upload: Open = {
      id: randomUUID(),
      account,
      principal,
      name,
      size: 0,
      path,
      hash: createHash('sha256'),
      busy: false,
      kept: false,
      cancelExpiry: () => {},
    };
    this.#open.set(upload.id, upload);
    this.#expireLater(upload);
    try {
      await this.#usage.check(account, this.#arriving(account));
      await writeFile(path, '', { flag: 'wx', mode: 0o600 });
    } catch (error) {
      await this.#end(upload);
      throw storageError(error);
    }
    return upload;
  }

  /** Throws `BLOB_UPLOAD_UNKNOWN` for one that is not there or belongs to another account, principal or repository. */
  get(wanted: Omit<Upload, 'size'>): Upload {
    return this.#find(wanted);
  }

  /** Adds a body at the end; `start` must be where the upload ends. What came before a broken connection is kept. */
  async append(
    upload: Upload,
    body: AsyncIterable<Uint8Array> & { destroy(): unknown },
    start?: number,
  ): Promise<void> {
    const found = this.#find(upload);
    if (found.busy)
      throw new RegistryError('BLOB_UPLOAD_INVALID', 'another part of this upload is still arriving', { status: 409 });
    if (start !== undefined && start !== found.size) {
      throw new RegistryError('RANGE_INVALID', `the upload has ${found.size} bytes, so the next part begins there`, {
        headers: progress(found),
      });
    }
    found.busy = true;
    found.cancelExpiry();
    let cancelStall = (): void => {};
    const alive = (): void => {
      cancelStall();
      cancelStall = this.#clock.after(this.#limits.stallMs, () => body.destroy());
    };
    try {
      const file = await open(found.path, 'a');
      try {
        alive();
        for await (const chunk of body) {
          alive();
          if (found.size + chunk.length > this.#limits.uploadBytes) {
            throw new RegistryError('SIZE_INVALID', `a blob may have ${describeBytes(this.#limits.uploadBytes)}`);
          }
          this.#needRoom();
          await this.#usage.check(found.account, this.#arriving(found.account) + chunk.length);
          await writeAll(file, chunk);
          found.hash.update(chunk);
          found.size += chunk.length;
        }
      } finally {
        cancelStall();
        await file.close();
      }
    } catch (error) {
      // On a full disk what has arrived goes too: it is room for others, and the client begins again.
      if (error instanceof RegistryError || error instanceof ImageError || isDiskFull(error)) await this.#end(found);
      throw storageError(error);
    } finally {
      found.busy = false;
      if (this.#open.has(found.id)) this.#expireLater(found);
    }
  }

  /** Makes the upload a blob of its account. Throws `DIGEST_INVALID` and forgets it when the content is another. */
  async finish(upload: Upload, digest: string): Promise<BlobInfo> {
    const found = this.#find(upload);
    if (found.busy)
      throw new RegistryError('BLOB_UPLOAD_INVALID', 'a part of this upload is still arriving', { status: 409 });
    found.busy = true;
    try {
      const actual = `sha256:${found.hash.digest('hex')}`;
      if (actual !== digest) throw new RegistryError('DIGEST_INVALID', `the content is ${actual}, not ${digest}`);
      await this.#usage.take(found.account, { bytes: found.size, parts: 1 });
      found.kept = true;
      const file = await open(found.path, 'r+');
      await file.sync().finally(() => file.close());
      await this.#store.blobs.adopt(found.path, digest);
      await this.#store.repositories.linkBlob(found.account, found.name, digest);
      return { digest, size: found.size };
    } catch (error) {
      throw storageError(error);
    } finally {
      await this.#end(found);
    }
  }

  async cancel(upload: Upload): Promise<void> {
    await this.#end(this.#find(upload));
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((upload) => this.#end(upload)));
  }

  /** Bytes of uploads of an account that are not kept yet. */
  #arriving(account: string): number {
    let bytes = 0;
    for (const upload of this.#open.values()) if (upload.account === account && !upload.kept) bytes += upload.size;
    return bytes;
  }

  #find(upload: Omit<Upload, 'size'>): Open {
    const found = this.#open.get(upload.id);
    const same =
      found?.account === upload.account && found.principal === upload.principal && found.name === upload.name;
    if (found && same) return found;
    throw new RegistryError('BLOB_UPLOAD_UNKNOWN', 'there is no such upload, or it was given up; begin again');
  }

  #expireLater(upload: Open): void {
    upload.cancelExpiry();
    upload.cancelExpiry = this.#clock.after(this.#limits.uploadIdleMs, () => {
      // Removing a file that a failing disk holds must not end the server; the sweep at the next start finds it.
      if (!upload.busy) this.#end(upload).catch(() => undefined);
    });
  }

  async #end(upload: Open): Promise<void> {
    upload.cancelExpiry();
    this.#open.delete(upload.id);
    await rm(upload.path, { force: true });
  }
}

/** Headers that tell a client how far an upload is. */
export function progress(upload: Upload): Record<string, string> {
  return {
    location: `/v2/${upload.name}/blobs/uploads/${upload.id}`,
    range: `0-${Math.max(0, upload.size - 1)}`,
    'docker-upload-uuid': upload.id,
  };
}
