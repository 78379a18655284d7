import type { Readable } from 'node:stream';
import type { Checksum } from './checksums.ts';

/** Objects by bucket and key, with the meaning that S3 gives to each operation. Failures are `ObjectError`s. */
export interface ObjectStore {
  createBucket(name: string, owner: string): Promise<void>;
  /** Undefined when the bucket does not exist. */
  bucket(name: string): Promise<Bucket | undefined>;
  listBuckets(): Promise<Bucket[]>;
  /** Throws `BucketNotEmpty`. */
  deleteBucket(name: string): Promise<void>;

  /** Stores or replaces, all or nothing: an error thrown by `body` leaves what was there before. */
  put(place: ObjectPlace, body: AsyncIterable<Uint8Array>, options?: PutOptions): Promise<ObjectInfo>;
  /** Throws `NoSuchKey`, `NoSuchBucket`, `InvalidRange`. The body must be read or destroyed. */
  get(place: ObjectPlace, range?: RangeRequest): Promise<StoredObject>;
  /** Undefined when the object does not exist. */
  head(place: ObjectPlace): Promise<ObjectInfo | undefined>;
  /** Does nothing when the object does not exist. */
  delete(place: ObjectPlace): Promise<void>;
  /** In the order of the keys' UTF-8 bytes. */
  list(bucket: string, options: ListObjectsOptions): Promise<ObjectPage>;

  createUpload(place: ObjectPlace, options?: PutOptions): Promise<string>;
  uploadPart(upload: UploadPlace, partNumber: number, body: AsyncIterable<Uint8Array>): Promise<Part>;
  listParts(upload: UploadPlace): Promise<Part[]>;
  /** Throws `NoSuchUpload`, `InvalidPart`, `InvalidPartOrder`, `EntityTooSmall`. */
  completeUpload(
    upload: UploadPlace,
    parts: readonly { partNumber: number; etag: string }[],
    options?: Pick<PutOptions, 'onlyIfAbsent'>,
  ): Promise<ObjectInfo>;
  abortUpload(upload: UploadPlace): Promise<void>;
  listUploads(bucket: string): Promise<Upload[]>;
}

export interface ObjectPlace {
  bucket: string;
  key: string;
}

export interface UploadPlace extends ObjectPlace {
  uploadId: string;
}

export interface Bucket {
  name: string;
  /** The account. */
  owner: string;
  createdAt: Date;
}

export interface PutOptions {
  contentType?: string;
  /** Headers that are given back as they came: cache-control, content-disposition, content-encoding, content-language, expires. */
  headers?: Record<string, string>;
  /** User metadata, by lower-case name without `x-amz-meta-`. */
  metadata?: Record<string, string>;
  /** Known once the body has been read. */
  checksum?(): Checksum | undefined;
  /** Throws `PreconditionFailed` when the key exists. */
  onlyIfAbsent?: boolean;
}

export interface ObjectInfo {
  key: string;
  /** Bytes. */
  size: number;
  /** Without quotes: MD5 in hex, or `MD5-N` of an upload in N parts. */
  etag: string;
  lastModified: Date;
  contentType?: string;
  headers: Record<string, string>;
  metadata: Record<string, string>;
  checksum?: Checksum;
}

/** `bytes=first-last`, `bytes=first-` or `bytes=-suffix`. */
export type RangeRequest = { first: number; last?: number } | { suffix: number };

export interface StoredObject {
  info: ObjectInfo;
  body: Readable;
  /** The bytes that `body` holds, both ends inclusive, when a range was asked for. */
  range?: { first: number; last: number };
}

export interface ListObjectsOptions {
  prefix?: string;
  /** Keys that share what lies between the prefix and this are shown as one common prefix. */
  delimiter?: string;
  /** Only keys after this one. */
  startAfter?: string;
  /** `next` of the page before. */
  token?: string;
  /** Objects and common prefixes together. */
  limit: number;
}

export interface ObjectPage {
  objects: ObjectInfo[];
  commonPrefixes: string[];
  next?: string;
}

export interface Part {
  partNumber: number;
  etag: string;
  size: number;
  lastModified: Date;
}

export interface Upload {
  uploadId: string;
  key: string;
  startedAt: Date;
}

/** S3's rules for names (3 to 63 characters); it also keeps them safe as directory names. */
export function isBucketName(name: string): boolean {
  return /^(?!\d+\.\d+\.\d+\.\d+$)[a-z0-9](?:[a-z0-9-]|\.(?![.-])|-(?!\.)){1,61}[a-z0-9]$/.test(name);
}

/** 1 to 1024 bytes of well-formed text. */
export function isObjectKey(key: string): boolean {
  return key.length > 0 && key.isWellFormed() && !key.includes('\0') && Buffer.byteLength(key) <= 1024;
}
