import { ObjectError, type ObjectInfo } from '../../kernel/objects/index.ts';
import type { S3Context } from './context.ts';
import { toObjectError } from './errors.ts';
import { intParameter } from './request.ts';
import { childText, writeXml, type XmlValue } from './xml.ts';

const MAX_KEYS = 1000;

export async function listBuckets(ctx: S3Context) {
  const buckets = (await ctx.store.listBuckets()).filter((bucket) => bucket.owner === ctx.accountId);
  const Bucket = buckets.map(({ name, createdAt }) => ({ Name: name, CreationDate: createdAt }));
  return ctx.xml(writeXml('ListAllMyBucketsResult', { Owner: { ID: ctx.accountId }, Buckets: { Bucket } }));
}

export async function createBucket(ctx: S3Context) {
  const { bucket } = ctx.place;
  // The body may name a region; there is one. It is read all the same, since the signature covers it.
  for await (const _ of (await ctx.body()).body);
  await ctx.store.createBucket(bucket, ctx.accountId);
  return ctx.reply.code(200).header('location', `/${bucket}`).send();
}

export async function headBucket(ctx: S3Context) {
  await ctx.bucket();
  return ctx.reply.code(200).header('x-amz-bucket-region', ctx.deps.region).send();
}

export async function deleteBucket(ctx: S3Context) {
  await ctx.bucket();
  await ctx.store.deleteBucket(ctx.place.bucket);
  return ctx.reply.code(204).send();
}

export async function bucketLocation(ctx: S3Context) {
  await ctx.bucket();
  // S3 says nothing for its first region.
  const region = ctx.deps.region === 'us-east-1' ? '' : ctx.deps.region;
  return ctx.xml(writeXml('LocationConstraint', region));
}

export async function bucketVersioning(ctx: S3Context) {
  await ctx.bucket();
  return ctx.xml(writeXml('VersioningConfiguration', ''));
}

/** ListObjectsV2. */
export async function listObjectsV2(ctx: S3Context) {
  const listing = await readListing(
    ctx,
    ctx.query.get('continuation-token') ?? undefined,
    ctx.query.get('start-after'),
  );
  const { page, shared, encode, maxKeys } = listing;
  const startAfter = ctx.query.get('start-after');
  return ctx.xml(
    writeXml('ListBucketResult', {
      ...shared,
      MaxKeys: maxKeys,
      KeyCount: page.objects.length + page.commonPrefixes.length,
      IsTruncated: page.next !== undefined,
      ContinuationToken: ctx.query.get('continuation-token') ?? undefined,
      NextContinuationToken: page.next,
      StartAfter: startAfter === null ? undefined : encode(startAfter),
      ...contents(page, encode, ctx.accountId, ctx.query.get('fetch-owner') === 'true'),
    }),
  );
}

/** ListObjects: its marker is a key or a common prefix as it was shown. */
export async function listObjectsV1(ctx: S3Context) {
  const marker = ctx.query.get('marker') ?? '';
  const delimiter = ctx.query.get('delimiter') ?? '';
  const prefix = ctx.query.get('prefix') ?? '';
  const shownAsPrefix = delimiter !== '' && marker.endsWith(delimiter) && marker.length > prefix.length;
  const token = shownAsPrefix ? Buffer.from(JSON.stringify({ past: marker })).toString('base64url') : undefined;
  const { page, shared, encode, maxKeys } = await readListing(ctx, token, marker);
  const last = [page.objects.at(-1)?.key, page.commonPrefixes.at(-1)].filter((one) => one !== undefined);
  const lastShown = last.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).at(-1);
  return ctx.xml(
    writeXml('ListBucketResult', {
      ...shared,
      MaxKeys: maxKeys,
      Marker: encode(marker),
      IsTruncated: page.next !== undefined,
      NextMarker: page.next === undefined || lastShown === undefined ? undefined : encode(lastShown),
      ...contents(page, encode, ctx.accountId, true),
    }),
  );
}

async function readListing(ctx: S3Context, token: string | undefined, startAfter: string | null) {
  await ctx.bucket();
  const maxKeys = Math.min(intParameter(ctx.query, 'max-keys', { min: 0, max: 2 ** 31, default: MAX_KEYS }), MAX_KEYS);
  const encodingType = ctx.query.get('encoding-type') ?? undefined;
  if (encodingType !== undefined && encodingType !== 'url') {
    throw new ObjectError('InvalidArgument', 'encoding-type must be url.');
  }
  const prefix = ctx.query.get('prefix') ?? '';
  const delimiter = ctx.query.get('delimiter') ?? undefined;
  const encode = encodingType === 'url' ? encodeKey : (text: string) => text;
  const options = { prefix, delimiter, token, startAfter: startAfter || undefined, limit: maxKeys };
  const page = await ctx.store.list(ctx.place.bucket, options);
  const shared = {
    Name: ctx.place.bucket,
    Prefix: encode(prefix),
    Delimiter: delimiter === undefined ? undefined : encode(delimiter),
    EncodingType: encodingType,
  };
  return { page, shared, encode, maxKeys };
}

function contents(
  page: { objects: ObjectInfo[]; commonPrefixes: string[] },
  encode: (text: string) => string,
  owner: string,
  withOwner: boolean,
): { [name: string]: XmlValue | undefined } {
  return {
    Contents: page.objects.map((info) => ({
      Key: encode(info.key),
      LastModified: info.lastModified,
      ETag: `"${info.etag}"`,
      Size: info.size,
      StorageClass: 'STANDARD',
      Owner: withOwner ? { ID: owner } : undefined,
    })),
    CommonPrefixes: page.commonPrefixes.map((Prefix) => ({ Prefix: encode(Prefix) })),
  };
}

function encodeKey(text: string): string {
  return encodeURIComponent(text)
    .replace(/%2F/g, '/')
    .replace(/[!'()]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** DeleteObjects: up to 1,000 keys, each with its own outcome. */
export async function deleteObjects(ctx: S3Context) {
  const { bucket } = ctx.place;
  const document = await ctx.xmlBody();
  const keys = document.children.filter((child) => child.name === 'Object').map((child) => childText(child, 'Key'));
  if (document.name !== 'Delete' || keys.length === 0 || keys.length > MAX_KEYS || keys.some((key) => !key)) {
    throw new ObjectError('MalformedXML', `Name 1 to ${MAX_KEYS} objects to delete.`);
  }
  const quiet = childText(document, 'Quiet') === 'true';
  const Deleted: XmlValue[] = [];
  const Failed: XmlValue[] = [];
  for (const Key of keys.filter((key) => key !== undefined)) {
    try {
      await ctx.other('s3:DeleteObject', { bucket, key: Key });
      await ctx.store.delete({ bucket, key: Key });
      if (!quiet) Deleted.push({ Key });
    } catch (error) {
      const failure = toFailure(error);
      if (failure.code === 'NoSuchBucket') throw error;
      Failed.push({ Key, Code: failure.code, Message: failure.message });
    }
  }
  return ctx.xml(writeXml('DeleteResult', { Deleted, Error: Failed }));
}

function toFailure(error: unknown): ObjectError {
  const known = toObjectError(error);
  if (!known) throw error;
  return known;
}
