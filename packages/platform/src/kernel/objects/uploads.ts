import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../clock.ts';
import { syncDirectory } from '../durable-file.ts';
import { number, object, record, type Shape, storedText, text as string } from '../stored-shape.ts';
import { mapFileError, ObjectError } from './errors.ts';
import { ObjectFileWriter } from './object-file.ts';
import type { ObjectInfo, ObjectPlace, ObjectStore, Part, PutOptions, Upload, UploadPlace } from './object-store.ts';
import { type ObjectChange, UPLOAD_FILE, type Writing } from './object-usage.ts';

interface UploadsDeps {
  clock: Clock;
  needBucket(name: string): Promise<string>;
  /** Throws for a key that no object can have. */
  checkKey(place: ObjectPlace): unknown;
  store(
    place: ObjectPlace,
    options: PutOptions,
    fill: (writer: ObjectFileWriter) => Promise<string>,
    counted?: 'already',
  ): Promise<ObjectInfo>;
  /** Throws `QuotaExceeded`. */
  beginWriting(bucket: string): Promise<Writing>;
  changed(bucket: string, change: ObjectChange): void;
  /** The same for the bucket that has the name now, when it is known later. */
  changes(bucket: string): (change: ObjectChange) => void;
}

type UploadMethods = Pick<
  ObjectStore,
  'createUpload' | 'uploadPart' | 'listParts' | 'completeUpload' | 'abortUpload' | 'listUploads'
>;

interface Stored {
  key: string;
  startedAt: number;
  contentType?: string;
  headers?: Record<string, string>;
  metadata?: Record<string, string>;
}

const UPLOAD: Shape<Stored> = object(
  { key: string, startedAt: number },
  { contentType: string, headers: record(string), metadata: record(string) },
);

/** S3's least size of every part but the last, in bytes. */
const MIN_PART_BYTES = 5 * 1024 * 1024;
const PART_NAME = /^(\d{5})-([0-9a-f]{32})$/;

/** Uploads in parts: a directory each, with `upload.json` and the parts as `NUMBER-MD5`. */
export function createUploads(deps: UploadsDeps): UploadMethods {
  const { clock, needBucket, checkKey, store, beginWriting, changed, changes } = deps;

  const find = async ({ bucket, key, uploadId }: UploadPlace): Promise<{ path: string; upload: Stored }> => {
    const root = await needBucket(bucket);
    const path = join(root, 'uploads', uploadId);
    const text = /^[0-9a-f]{32}$/.test(uploadId)
      ? await readFile(join(path, UPLOAD_FILE), 'utf8').catch(() => undefined)
      : undefined;
    const upload = text === undefined ? undefined : storedText(UPLOAD, text);
    if (upload?.key !== key)
      throw new ObjectError('NoSuchUpload', 'The upload does not exist, was completed or aborted.');
    return { path, upload };
  };

  const partsIn = async (path: string): Promise<Part[]> => {
    const names = (await readdir(path)).sort();
    const parts: Part[] = [];
    for (const name of names) {
      const match = PART_NAME.exec(name);
      if (!match?.[1] || !match[2]) continue;
      const { size, mtime } = await stat(join(path, name));
      parts.push({ partNumber: Number(match[1]), etag: match[2], size, lastModified: mtime });
    }
    return parts;
  };

  /** The upload is over; what its parts took is free. */
  const remove = async (bucket: string, path: string): Promise<void> => {
    const changed = changes(bucket);
    let bytes = (await stat(join(path, UPLOAD_FILE))).size;
    for (const { size } of await partsIn(path)) bytes += size;
    await rm(path, { recursive: true, force: true });
    changed({ bytes: -bytes, objects: -1 });
  };

  return {
    createUpload: async (place, options = {}) => {
      checkKey(place);
      const root = await needBucket(place.bucket);
      (await beginWriting(place.bucket)).release();
      const uploadId = randomBytes(16).toString('hex');
      const path = join(root, 'uploads', uploadId);
      const { contentType, headers, metadata } = options;
      const upload: Stored = { key: place.key, startedAt: clock.now(), contentType, headers, metadata };
      try {
        await mkdir(path, { mode: 0o700 });
        const text = JSON.stringify(upload);
        await writeFile(join(path, UPLOAD_FILE), text, { mode: 0o600, flush: true });
        await syncDirectory(path);
        changed(place.bucket, { bytes: Buffer.byteLength(text), objects: 1 });
      } catch (error) {
        throw mapFileError(error);
      }
      return uploadId;
    },

    uploadPart: async (place, partNumber, body) => {
      const { path } = await find(place);
      const writing = await beginWriting(place.bucket);
      const unfinished = join(path, `tmp-${randomBytes(8).toString('hex')}`);
      try {
        const file = await open(unfinished, 'wx', 0o600);
        const writer = new ObjectFileWriter(file, writing.grow);
        try {
          await writer.write(body);
          await file.datasync();
        } finally {
          await file.close();
        }
        const etag = writer.md5();
        const prefix = `${String(partNumber).padStart(5, '0')}-`;
        const replaced = (await partsIn(path)).filter((part) => part.partNumber === partNumber);
        await rename(unfinished, join(path, prefix + etag));
        for (const part of replaced) if (part.etag !== etag) await rm(join(path, partName(part)), { force: true });
        const freed = replaced.reduce((sum, { size }) => sum + size, 0);
        changed(place.bucket, { bytes: writer.size - freed, objects: 0 });
        await syncDirectory(path);
        return { partNumber, etag, size: writer.size, lastModified: new Date(clock.now()) };
      } catch (error) {
        await rm(unfinished, { force: true });
        throw mapFileError(error);
      } finally {
        writing.release();
      }
    },

    listParts: async (place) => partsIn((await find(place)).path),

    completeUpload: async (place, wanted, options = {}) => {
      const { path, upload } = await find(place);
      const stored = new Map((await partsIn(path)).map((part) => [part.partNumber, part]));
      const chosen = choose(wanted, stored);
      const { contentType, headers, metadata } = upload;
      const info = await store(
        place,
        { contentType, headers, metadata, ...options },
        async (writer) => {
          for (const part of chosen) await writer.write(createReadStream(join(path, partName(part))));
          const digests = Buffer.concat(chosen.map((part) => Buffer.from(part.etag, 'hex')));
          return `${createHash('md5').update(digests).digest('hex')}-${chosen.length}`;
        },
        'already',
      );
      await remove(place.bucket, path);
      return info;
    },

    abortUpload: async (place) => {
      const { path } = await find(place);
      await remove(place.bucket, path);
    },

    listUploads: async (bucket) => {
      const root = await needBucket(bucket);
      const uploads: Upload[] = [];
      for (const uploadId of await readdir(join(root, 'uploads'))) {
        const text = await readFile(join(root, 'uploads', uploadId, 'upload.json'), 'utf8').catch(() => undefined);
        if (text === undefined) continue;
        const { key, startedAt } = storedText(UPLOAD, text);
        uploads.push({ uploadId, key, startedAt: new Date(startedAt) });
      }
      return uploads.sort((a, b) => (a.key < b.key ? -1 : 1));
    },
  };
}

function choose(wanted: readonly { partNumber: number; etag: string }[], stored: Map<number, Part>): Part[] {
  if (wanted.length === 0) throw new ObjectError('MalformedXML', 'An upload is completed with one part at least.');
  if (wanted.some(({ partNumber }, index) => partNumber <= (wanted[index - 1]?.partNumber ?? 0))) {
    throw new ObjectError('InvalidPartOrder', 'The parts must be listed in ascending order.');
  }
  const chosen = wanted.map(({ partNumber, etag }) => {
    const part = stored.get(partNumber);
    if (part?.etag === etag) return part;
    throw new ObjectError('InvalidPart', `Part ${partNumber} was not uploaded, or its ETag is another.`);
  });
  const small = chosen.slice(0, -1).find((part) => part.size < MIN_PART_BYTES);
  if (small) {
    const { partNumber, size } = small;
    const message = `Part ${partNumber} has ${size} bytes; all but the last need ${MIN_PART_BYTES}.`;
    throw new ObjectError('EntityTooSmall', message);
  }
  return chosen;
}

function partName(part: Part): string {
  return `${String(part.partNumber).padStart(5, '0')}-${part.etag}`;
}
