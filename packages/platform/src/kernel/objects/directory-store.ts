import { randomBytes } from 'node:crypto';
import {
  type FileHandle,
  link,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import type { Clock } from '../clock.ts';
import { syncDirectory } from '../durable-file.ts';
import { number, object, storedText, text as string } from '../stored-shape.ts';
import { errorCode } from '../system-error.ts';
import { Turns } from '../turns.ts';
import { isMissing, mapFileError, ObjectError } from './errors.ts';
import { keyToPath } from './key-path.ts';
import { listKeys } from './list-keys.ts';
import { ObjectFileWriter, openObject, readInfo } from './object-file.ts';
import {
  type Bucket,
  isBucketName,
  isObjectKey,
  type ObjectInfo,
  type ObjectPlace,
  type ObjectStore,
  type PutOptions,
} from './object-store.ts';
import { type ObjectLimits, ObjectUsage, type Writing } from './object-usage.ts';
import { resolveRange } from './range.ts';
import { createUploads } from './uploads.ts';

export interface DirectoryStoreDeps {
  directory: string;
  clock: Clock;
  limits?: ObjectLimits;
}

const BUCKET = object({ owner: string, createdAt: number });
const UNLIMITED: ObjectLimits = {
  bytesPerBucket: Number.POSITIVE_INFINITY,
  bytesPerAccount: Number.POSITIVE_INFINITY,
  objectsPerAccount: Number.POSITIVE_INFINITY,
  bucketsPerAccount: Number.POSITIVE_INFINITY,
};

const PUT_ATTEMPTS = 20;

/**
 * The embedded object store. Below `directory` each bucket has `objects/` (see `key-path.ts`), `uploads/` and `tmp/`;
 * an object is written aside, brought to the disk and renamed into place, so a reader sees it whole or not at all.
 */
export async function openDirectoryStore(deps: DirectoryStoreDeps): Promise<ObjectStore> {
  const { directory, clock, limits = UNLIMITED } = deps;
  const usage = new ObjectUsage(directory, limits);
  const turns = new Turns();
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await removeUnfinished(directory);

  const bucketPath = (name: string): string => {
    if (!isBucketName(name)) throw new ObjectError('InvalidBucketName', `${name} is not a valid bucket name.`);
    return join(directory, name);
  };

  const readBucket = async (name: string): Promise<Bucket | undefined> => {
    if (!isBucketName(name)) return undefined;
    const text = await readFile(join(bucketPath(name), 'bucket.json'), 'utf8').catch(ignoreMissing);
    if (text === undefined) return undefined;
    const { owner, createdAt } = storedText(BUCKET, text);
    return { name, owner, createdAt: new Date(createdAt) };
  };

  const needBucket = async (name: string): Promise<string> => {
    if (!(await readBucket(name))) throw new ObjectError('NoSuchBucket', `The bucket ${name} does not exist.`);
    return bucketPath(name);
  };

  const listBuckets = async (): Promise<Bucket[]> => {
    const names = (await readdir(directory)).filter(isBucketName).sort();
    const buckets = await Promise.all(names.map(readBucket));
    return buckets.filter((bucket) => bucket !== undefined);
  };

  /** What is written counts from here on. Throws `QuotaExceeded`. */
  const beginWriting = async (bucket: string): Promise<Writing> => {
    await usage.count(listBuckets);
    return usage.writing(bucket);
  };

  const pathOf = ({ bucket, key }: ObjectPlace): string => {
    if (!isObjectKey(key)) throw new ObjectError('KeyTooLongError', 'A key has 1 to 1024 bytes of well-formed UTF-8.');
    return join(bucketPath(bucket), 'objects', ...keyToPath(key));
  };

  /** Writes a file aside; `fill` describes it; then it takes its place. */
  const store = async (
    place: ObjectPlace,
    options: PutOptions,
    fill: (writer: ObjectFileWriter) => Promise<string>,
    counted?: 'already',
  ): Promise<ObjectInfo> => {
    const path = pathOf(place);
    const root = await needBucket(place.bucket);
    const writing = counted ? undefined : await beginWriting(place.bucket);
    const unfinished = join(root, 'tmp', randomBytes(12).toString('hex'));
    let file: FileHandle | undefined;
    try {
      file = await open(unfinished, 'wx', 0o600);
      const writer = new ObjectFileWriter(file, writing?.grow);
      const etag = await fill(writer);
      const { contentType, headers = {}, metadata = {} } = options;
      const checksum = options.checksum?.();
      const about = { etag, lastModified: new Date(clock.now()), contentType, headers, metadata, checksum };
      await writer.describe(about);
      const { size } = await file.stat();
      await turns.take(path, async () => {
        const before = await sizeOf(path);
        await moveIntoPlace(unfinished, path, join(root, 'objects'), options.onlyIfAbsent ?? false);
        usage.change(place.bucket, { bytes: size - (before ?? 0), objects: before === undefined ? 1 : 0 });
      });
      return { key: place.key, size: writer.size, ...about };
    } catch (error) {
      throw mapFileError(error);
    } finally {
      writing?.release();
      await file?.close();
      await rm(unfinished, { force: true });
    }
  };

  return {
    createBucket: async (name, owner) => {
      const path = bucketPath(name);
      const existing = await readBucket(name);
      if (existing) {
        const code = existing.owner === owner ? 'BucketAlreadyOwnedByYou' : 'BucketAlreadyExists';
        throw new ObjectError(code, `The bucket ${name} exists already.`);
      }
      await usage.count(listBuckets);
      usage.addBucket(name, owner);
      try {
        for (const part of ['objects', 'uploads', 'tmp'])
          await mkdir(join(path, part), { recursive: true, mode: 0o700 });
        const unfinished = join(path, 'tmp', 'bucket.json');
        await writeFile(unfinished, JSON.stringify({ owner, createdAt: clock.now() }), { mode: 0o600, flush: true });
        // Of two creators at once one loses here.
        await link(unfinished, join(path, 'bucket.json'));
        await rm(unfinished);
        await syncDirectory(path);
        await syncDirectory(directory);
      } catch (error) {
        // Unless somebody else was faster: then it is there.
        if (errorCode(error) !== 'EEXIST') usage.removeBucket(name);
        if (errorCode(error) === 'EEXIST')
          throw new ObjectError('BucketAlreadyExists', `The bucket ${name} exists already.`);
        throw mapFileError(error);
      }
    },
    bucket: readBucket,
    listBuckets,
    deleteBucket: async (name) => {
      const path = await needBucket(name);
      const page = await listKeys(join(path, 'objects'), { limit: 1 });
      if (page.items.length > 0) throw new ObjectError('BucketNotEmpty', `The bucket ${name} is not empty.`);
      await unlink(join(path, 'bucket.json'));
      usage.removeBucket(name);
      await rm(path, { recursive: true, force: true });
    },

    put: (place, body, options = {}) =>
      store(place, options, async (writer) => {
        await writer.write(body);
        return writer.md5();
      }),
    get: async (place, request) => {
      const path = pathOf(place);
      await needBucket(place.bucket);
      const file = await openObject(path);
      if (!file) throw new ObjectError('NoSuchKey', `The key ${place.key} does not exist.`);
      try {
        const info = await readInfo(file, place.key);
        const range = request && resolveRange(request, info.size);
        const { first, last } = range ?? { first: 0, last: info.size - 1 };
        const body =
          last < first
            ? emptyBody(file)
            : file.createReadStream({ start: first, end: last, highWaterMark: 256 * 1024 });
        return range ? { info, body, range } : { info, body };
      } catch (error) {
        await file.close();
        throw error;
      }
    },
    head: async (place) => {
      const path = pathOf(place);
      await needBucket(place.bucket);
      return readInfoAt(path, place.key);
    },
    delete: async (place) => {
      const path = pathOf(place);
      const root = await needBucket(place.bucket);
      await turns.take(path, async () => {
        const changed = usage.changes(place.bucket);
        const before = await sizeOf(path);
        await unlink(path).catch(ignoreMissing);
        if (before !== undefined) changed({ bytes: -before, objects: -1 });
      });
      await pruneEmpty(dirname(path), join(root, 'objects'));
    },
    list: async (bucket, options) => {
      const root = await needBucket(bucket);
      const page = await listKeys(join(root, 'objects'), options);
      const objects: ObjectInfo[] = [];
      const commonPrefixes: string[] = [];
      for (const item of page.items) {
        if (item.kind === 'prefix') commonPrefixes.push(item.prefix.toString());
        else {
          // Deleted since the directory was read, perhaps.
          const info = await readInfoAt(item.found.path, item.found.key.toString());
          if (info) objects.push(info);
        }
      }
      return page.next === undefined ? { objects, commonPrefixes } : { objects, commonPrefixes, next: page.next };
    },
    ...createUploads({
      clock,
      needBucket,
      checkKey: pathOf,
      store,
      beginWriting,
      changed: (bucket, change) => usage.change(bucket, change),
      changes: (bucket) => usage.changes(bucket),
    }),
  };
}

/** Undefined when there is no such file. */
async function sizeOf(path: string): Promise<number | undefined> {
  const found = await stat(path).catch(ignoreMissing);
  return found?.size;
}

async function readInfoAt(path: string, key: string): Promise<ObjectInfo | undefined> {
  const file = await openObject(path);
  if (!file) return undefined;
  try {
    return await readInfo(file, key);
  } finally {
    await file.close();
  }
}

function emptyBody(file: FileHandle): Readable {
  void file.close().catch(() => undefined);
  return Readable.from([]);
}

/** A deletion may remove the directories again before the rename: then once more. */
async function moveIntoPlace(from: string, to: string, root: string, onlyIfAbsent: boolean): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const made = await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    try {
      if (onlyIfAbsent) await link(from, to);
      else await rename(from, to);
      for (let path = dirname(to); ; path = dirname(path)) {
        await syncDirectory(path);
        if (made === undefined || path === root || path.length < made.length) return;
      }
    } catch (error) {
      if (errorCode(error) === 'EEXIST') throw new ObjectError('PreconditionFailed', 'The key exists already.');
      if (errorCode(error) !== 'ENOENT' || attempt === PUT_ATTEMPTS) throw error;
    }
  }
}

async function pruneEmpty(from: string, root: string): Promise<void> {
  for (let path = from; path.length > root.length; path = dirname(path)) {
    try {
      await rmdir(path);
    } catch {
      return;
    }
  }
}

/** What a crash left half-written. */
async function removeUnfinished(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const path = join(directory, name, 'tmp');
    for (const file of await readdir(path).catch(() => [])) await rm(join(path, file), { force: true });
  }
}

function ignoreMissing(error: unknown): undefined {
  if (isMissing(error)) return undefined;
  throw error;
}
