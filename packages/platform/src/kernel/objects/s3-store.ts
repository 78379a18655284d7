import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  type HeadObjectCommandOutput,
  ListBucketsCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  ListPartsCommand,
  type S3Client,
  S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { isObjectErrorCode, ObjectError, type ObjectErrorCode } from './errors.ts';
import {
  isBucketName,
  isObjectKey,
  type ObjectInfo,
  type ObjectPlace,
  type ObjectStore,
  type Part,
  type PutOptions,
  type RangeRequest,
  type UploadPlace,
} from './object-store.ts';
import { putInParts } from './s3-put.ts';

export interface S3StoreOptions {
  client: S3Client;
  /** The account that all buckets there count as belonging to. */
  owner: string;
}

/** An S3 endpoint as object store. Bodies are streamed: in parts when they are larger than one. */
export function createS3Store({ client, owner }: S3StoreOptions): ObjectStore {
  const head = async (place: ObjectPlace): Promise<ObjectInfo | undefined> => {
    try {
      const output = await client.send(new HeadObjectCommand(check(place)));
      return infoOf(place.key, output, output.ContentLength ?? 0);
    } catch (error) {
      if (!isMissing(error)) throw mapError(error);
      // HEAD has no body to tell a missing key from a missing bucket.
      if (!(await exists(place.bucket)))
        throw new ObjectError('NoSuchBucket', `The bucket ${place.bucket} does not exist.`);
      return undefined;
    }
  };

  const exists = async (bucket: string): Promise<boolean> => {
    try {
      await client.send(new HeadBucketCommand({ Bucket: bucket }));
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw mapError(error);
    }
  };

  const listBuckets: ObjectStore['listBuckets'] = async () => {
    const { Buckets = [] } = await client.send(new ListBucketsCommand({})).catch(rethrow);
    return Buckets.map(({ Name = '', CreationDate = new Date(0) }) => ({ name: Name, owner, createdAt: CreationDate }));
  };

  const store: ObjectStore = {
    createBucket: async (name) => {
      if (!isBucketName(name)) throw new ObjectError('InvalidBucketName', `${name} is not a valid bucket name.`);
      await client.send(new CreateBucketCommand({ Bucket: name })).catch(rethrow);
    },
    bucket: async (name) => {
      if (!isBucketName(name) || !(await exists(name))) return undefined;
      return (await listBuckets()).find((bucket) => bucket.name === name) ?? { name, owner, createdAt: new Date(0) };
    },
    listBuckets,
    deleteBucket: async (name) => {
      await client.send(new DeleteBucketCommand({ Bucket: name })).catch(rethrow);
    },
    put: async (place, body, options = {}) => {
      check(place);
      const stored = await putInParts(client, place, body, describe(options)).catch(rethrow);
      const { contentType, headers = {}, metadata = {} } = options;
      const checksum = options.checksum?.();
      return { key: place.key, ...stored, lastModified: new Date(), contentType, headers, metadata, checksum };
    },
    get: async (place, range) => {
      const output = await client
        .send(new GetObjectCommand({ ...check(place), Range: rangeHeader(range) }))
        .catch(rethrow);
      const body = output.Body;
      if (!(body instanceof Readable)) throw new ObjectError('InternalError', 'The S3 client gave no stream.');
      const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(output.ContentRange ?? '');
      if (!range || !match) return { info: infoOf(place.key, output, output.ContentLength ?? 0), body };
      return {
        info: infoOf(place.key, output, Number(match[3])),
        body,
        range: { first: Number(match[1]), last: Number(match[2]) },
      };
    },
    head,
    delete: async (place) => {
      await client.send(new DeleteObjectCommand(check(place))).catch(rethrow);
    },
    list: async (bucket, { prefix, delimiter, startAfter, token, limit }) => {
      if (limit === 0) return { objects: [], commonPrefixes: [] };
      const output = await client
        .send(
          new ListObjectsV2Command({
            Bucket: bucket,
            Prefix: prefix,
            Delimiter: delimiter,
            StartAfter: startAfter,
            ContinuationToken: token,
            MaxKeys: limit,
          }),
        )
        .catch(rethrow);
      const objects = (output.Contents ?? []).map(
        ({ Key = '', Size = 0, ETag, LastModified = new Date(0) }): ObjectInfo => ({
          key: Key,
          size: Size,
          etag: unquote(ETag),
          lastModified: LastModified,
          headers: {},
          metadata: {},
        }),
      );
      const commonPrefixes = (output.CommonPrefixes ?? []).flatMap(({ Prefix }) => Prefix ?? []);
      const next = output.IsTruncated ? output.NextContinuationToken : undefined;
      return next === undefined ? { objects, commonPrefixes } : { objects, commonPrefixes, next };
    },
    ...uploadMethods(client),
  };
  return store;
}

function uploadMethods(
  client: S3Client,
): Pick<ObjectStore, 'createUpload' | 'uploadPart' | 'listParts' | 'completeUpload' | 'abortUpload' | 'listUploads'> {
  return {
    createUpload: async (place, options = {}) => {
      const command = new CreateMultipartUploadCommand({ ...check(place), ...describe(options) });
      return (await client.send(command).catch(rethrow)).UploadId ?? '';
    },
    uploadPart: async (upload, partNumber, body) => {
      // The client must know the length beforehand; a part is small enough to hold.
      const pieces: Uint8Array[] = [];
      for await (const piece of body) pieces.push(piece);
      const bytes = Buffer.concat(pieces);
      const command = new UploadPartCommand({ ...uploadOf(upload), PartNumber: partNumber, Body: bytes });
      const { ETag } = await client.send(command).catch(rethrow);
      return { partNumber, etag: unquote(ETag), size: bytes.length, lastModified: new Date() };
    },
    listParts: async (upload) => {
      const parts: Part[] = [];
      for (let marker: string | undefined; ; ) {
        const page = await client
          .send(new ListPartsCommand({ ...uploadOf(upload), PartNumberMarker: marker }))
          .catch(rethrow);
        for (const { PartNumber = 0, ETag, Size = 0, LastModified = new Date(0) } of page.Parts ?? []) {
          parts.push({ partNumber: PartNumber, etag: unquote(ETag), size: Size, lastModified: LastModified });
        }
        if (!page.IsTruncated) return parts;
        marker = page.NextPartNumberMarker;
      }
    },
    completeUpload: async (upload, parts, options = {}) => {
      const Parts = parts.map(({ partNumber, etag }) => ({ PartNumber: partNumber, ETag: `"${etag}"` }));
      const IfNoneMatch = options.onlyIfAbsent ? '*' : undefined;
      const complete = new CompleteMultipartUploadCommand({
        ...uploadOf(upload),
        MultipartUpload: { Parts },
        IfNoneMatch,
      });
      const { ETag } = await client.send(complete).catch(rethrow);
      const output = await client.send(new HeadObjectCommand(check(upload))).catch(rethrow);
      return { ...infoOf(upload.key, output, output.ContentLength ?? 0), etag: unquote(ETag) };
    },
    abortUpload: async (upload) => {
      await client.send(new AbortMultipartUploadCommand(uploadOf(upload))).catch(rethrow);
    },
    listUploads: async (bucket) => {
      const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket })).catch(rethrow);
      return Uploads.map(({ Key = '', UploadId = '', Initiated = new Date(0) }) => ({
        key: Key,
        uploadId: UploadId,
        startedAt: Initiated,
      }));
    },
  };
}

function check({ bucket, key }: ObjectPlace): { Bucket: string; Key: string } {
  if (!isBucketName(bucket)) throw new ObjectError('InvalidBucketName', `${bucket} is not a valid bucket name.`);
  if (!isObjectKey(key)) throw new ObjectError('KeyTooLongError', 'A key has 1 to 1024 bytes of well-formed UTF-8.');
  return { Bucket: bucket, Key: key };
}

function uploadOf(upload: UploadPlace): { Bucket: string; Key: string; UploadId: string } {
  return { ...check(upload), UploadId: upload.uploadId };
}

export type PutParameters = ReturnType<typeof describe>;

function describe({ contentType, headers = {}, metadata, onlyIfAbsent }: PutOptions) {
  return {
    ContentType: contentType,
    CacheControl: headers['cache-control'],
    ContentDisposition: headers['content-disposition'],
    ContentEncoding: headers['content-encoding'],
    ContentLanguage: headers['content-language'],
    Metadata: metadata,
    ...(onlyIfAbsent && { IfNoneMatch: '*' }),
  };
}

type Described = Pick<
  HeadObjectCommandOutput,
  | 'ETag'
  | 'LastModified'
  | 'ContentType'
  | 'Metadata'
  | 'CacheControl'
  | 'ContentDisposition'
  | 'ContentEncoding'
  | 'ContentLanguage'
>;

function infoOf(key: string, output: Described, size: number): ObjectInfo {
  const headers = {
    'cache-control': output.CacheControl,
    'content-disposition': output.ContentDisposition,
    'content-encoding': output.ContentEncoding,
    'content-language': output.ContentLanguage,
  };
  return {
    key,
    size,
    etag: unquote(output.ETag),
    lastModified: output.LastModified ?? new Date(0),
    contentType: output.ContentType,
    headers: Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
    metadata: output.Metadata ?? {},
  };
}

function unquote(etag: string | undefined): string {
  return (etag ?? '').replace(/^"|"$/g, '');
}

function rangeHeader(range: RangeRequest | undefined): string | undefined {
  if (!range) return undefined;
  return 'suffix' in range ? `bytes=-${range.suffix}` : `bytes=${range.first}-${range.last ?? ''}`;
}

function isMissing(error: unknown): boolean {
  return error instanceof S3ServiceException && error.$metadata.httpStatusCode === 404;
}

function rethrow(error: unknown): never {
  throw mapError(error);
}

function mapError(error: unknown): unknown {
  if (!(error instanceof S3ServiceException)) return error;
  if (isObjectErrorCode(error.name)) return new ObjectError(error.name, error.message, { cause: error });
  const byStatus: Record<number, ObjectErrorCode> = {
    403: 'AccessDenied',
    404: 'NoSuchKey',
    416: 'InvalidRange',
    503: 'SlowDown',
  };
  const code = byStatus[error.$metadata.httpStatusCode ?? 0] ?? 'InternalError';
  return new ObjectError(code, `The object store answered ${error.name}: ${error.message}`, { cause: error });
}
