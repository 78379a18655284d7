import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { eachAtOnce } from '../each-at-once.ts';
import { orMissing } from '../system-error.ts';
import { ObjectError } from './errors.ts';

/** What objects may take; uploads that are not completed count like objects. */
export interface ObjectLimits {
  bytesPerBucket: number;
  bytesPerAccount: number;
  objectsPerAccount: number;
  bucketsPerAccount: number;
}

/** What was written or removed. */
export interface ObjectChange {
  bytes: number;
  objects: number;
}

/** Room that one write takes for as long as it lasts. */
export interface Writing {
  /** Before so many bytes more are written. Throws `QuotaExceeded`. */
  grow(bytes: number): void;
  /** The write is over, whether it succeeded or failed. */
  release(): void;
}

interface Used extends ObjectChange {
  owner: string;
  /** Bytes of `bytes` that are only arriving. */
  arriving: number;
}

/** Files that are looked at together when usage is counted anew. */
const LOOKS = 32;

/**
 * What the buckets of the embedded store hold, counted from their files at every start and kept in memory from then on, so that a killed
 * server knows it right. Who writes waits until it is counted; nobody else does.
 */
export class ObjectUsage {
  readonly #directory: string;
  readonly #limits: ObjectLimits;
  readonly #buckets = new Map<string, Used>();
  /** Of buckets that were deleted while somebody wrote to them: the bytes take room until he ends. */
  readonly #deleted = new Set<Used>();
  #counted: Promise<void> | undefined;

  constructor(directory: string, limits: ObjectLimits) {
    this.#directory = directory;
    this.#limits = limits;
  }

  /** Counts what is there already; `owners` names the buckets. A count that failed is tried again. */
  count(owners: () => Promise<readonly { name: string; owner: string }[]>): Promise<void> {
    this.#counted ??= this.#count(owners).catch((error: unknown) => {
      this.#counted = undefined;
      throw error;
    });
    return this.#counted;
  }

  /** A bucket is made. Throws `TooManyBuckets`. */
  addBucket(name: string, owner: string): void {
    const own = [...this.#buckets.values()].filter((used) => used.owner === owner).length;
    if (own >= this.#limits.bucketsPerAccount)
      throw new ObjectError('TooManyBuckets', `The account has ${own} buckets, and may have as many; delete some.`);
    if (!this.#buckets.has(name)) this.#buckets.set(name, { owner, bytes: 0, objects: 0, arriving: 0 });
  }

  removeBucket(name: string): void {
    const used = this.#buckets.get(name);
    this.#buckets.delete(name);
    if (!used || used.arriving === 0) return;
    used.bytes = used.arriving;
    used.objects = 0;
    this.#deleted.add(used);
  }

  /** Begins to write to a bucket. Throws `QuotaExceeded` when its account has as many objects as it may. */
  writing(bucket: string): Writing {
    // This one, whatever bucket has its name later.
    const used = this.#buckets.get(bucket) ?? { owner: '', bytes: 0, objects: 0, arriving: 0 };
    const { objects } = this.#ofAccount(used.owner);
    const { objectsPerAccount } = this.#limits;
    if (objects >= objectsPerAccount)
      throw exceeded(
        `The account has ${objects} objects, and may have ${objectsPerAccount}`,
        'quotas.objectsPerAccount',
      );
    let taken = 0;
    const take = (bytes: number): void => {
      taken += bytes;
      used.bytes += bytes;
      used.arriving += bytes;
      // One that was deleted has nothing else.
      if (this.#buckets.get(bucket) === used) return;
      if (used.arriving > 0) this.#deleted.add(used);
      else this.#deleted.delete(used);
    };
    const grow = (bytes: number): void => {
      take(bytes);
      this.#check(bucket, used);
    };
    return {
      grow,
      release: () => take(-taken),
    };
  }

  /** Something was written, or removed (less than 0). */
  change(bucket: string, change: ObjectChange): void {
    this.changes(bucket)(change);
  }

  /** The same for what takes a while: it changes the bucket that has the name now, not another that has it then. */
  changes(bucket: string): (change: ObjectChange) => void {
    const used = this.#buckets.get(bucket);
    return ({ bytes, objects }) => {
      // What a deleted bucket held went with it.
      if (!used || this.#buckets.get(bucket) !== used) return;
      used.bytes += bytes;
      used.objects += objects;
    };
  }

  of(bucket: string): ObjectChange | undefined {
    return this.#buckets.get(bucket);
  }

  #check(bucket: string, { bytes, owner }: Used): void {
    const { bytesPerBucket, bytesPerAccount } = this.#limits;
    if (bytes > bytesPerBucket)
      throw exceeded(`The bucket ${bucket} may hold ${bytesPerBucket} bytes`, 'quotas.objectBytesPerBucket');
    if (this.#ofAccount(owner).bytes > bytesPerAccount)
      throw exceeded(`The objects of the account may take ${bytesPerAccount} bytes`, 'quotas.objectBytesPerAccount');
  }

  #ofAccount(owner: string): ObjectChange {
    const all = { bytes: 0, objects: 0 };
    for (const used of [...this.#buckets.values(), ...this.#deleted]) {
      if (used.owner !== owner) continue;
      all.bytes += used.bytes;
      all.objects += used.objects;
    }
    return all;
  }

  async #count(owners: () => Promise<readonly { name: string; owner: string }[]>): Promise<void> {
    for (const { name, owner } of await owners()) {
      const used: Used = { owner, bytes: 0, objects: 0, arriving: 0 };
      for (const part of ['objects', 'uploads']) {
        const files = await readdir(join(this.#directory, name, part), { recursive: true, withFileTypes: true });
        const found = files.filter((file) => file.isFile());
        await eachAtOnce(LOOKS, found, undefined, async (file) => {
          const size = (await orMissing(stat(join(file.parentPath, file.name))))?.size ?? 0;
          used.bytes += size;
          if (part === 'objects' || file.name === UPLOAD_FILE) used.objects += 1;
        });
      }
      this.#buckets.set(name, used);
    }
  }
}

/** What describes an upload that is not completed. */
export const UPLOAD_FILE = 'upload.json';

function exceeded(what: string, setting: string): ObjectError {
  return new ObjectError('QuotaExceeded', `${what}; delete some, or raise ${setting}.`);
}
