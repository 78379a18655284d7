import type { FastifyReply } from 'fastify';
import {
  ObjectError,
  type ObjectInfo,
  type ObjectPlace,
  type PutOptions,
  parseRange,
} from '../../kernel/objects/index.ts';
import { checksumHeader, header } from './body.ts';
import type { S3Context } from './context.ts';
import { writeXml } from './xml.ts';

/** Headers that an object gives back as they were sent with it. */
const KEPT = ['cache-control', 'content-disposition', 'content-encoding', 'content-language', 'expires'];
/** What a request may ask an answer to say instead. */
const OVERRIDES = [
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-type',
  'expires',
];
const META = 'x-amz-meta-';
const MAX_METADATA_BYTES = 2048;

export async function getObject(ctx: S3Context) {
  await ctx.bucket();
  refuseVersion(ctx);
  const found = await ctx.store.get(ctx.place, parseRange(header(ctx.raw, 'range')));
  try {
    checkConditions(ctx, found.info);
    describe(ctx, found.info);
  } catch (error) {
    found.body.destroy();
    throw error;
  }
  for (const name of OVERRIDES) {
    const value = ctx.query.get(`response-${name}`);
    if (value !== null) ctx.reply.header(name, value);
  }
  const { reply } = ctx;
  if (!found.range) {
    addChecksum(ctx, found.info);
    return reply.code(200).header('content-length', found.info.size).send(found.body);
  }
  const { first, last } = found.range;
  reply.code(206).header('content-range', `bytes ${first}-${last}/${found.info.size}`);
  return reply.header('content-length', last - first + 1).send(found.body);
}

export async function headObject(ctx: S3Context) {
  await ctx.bucket();
  refuseVersion(ctx);
  const info = await ctx.store.head(ctx.place);
  if (!info) throw new ObjectError('NoSuchKey', 'The specified key does not exist.');
  checkConditions(ctx, info);
  describe(ctx, info);
  addChecksum(ctx, info);
  return ctx.reply.code(200).header('content-length', info.size).send();
}

export async function putObject(ctx: S3Context) {
  if (header(ctx.raw, 'x-amz-copy-source') !== undefined) return copyObject(ctx);
  await ctx.bucket();
  if (header(ctx.raw, 'if-match') !== undefined)
    throw new ObjectError('NotImplemented', 'If-Match is not served for PUT.');
  const { body, checksum } = await ctx.body();
  const onlyIfAbsent = header(ctx.raw, 'if-none-match') === '*';
  const info = await ctx.store.put(ctx.place, body, { ...putOptions(ctx), checksum, onlyIfAbsent });
  if (info.checksum) ctx.reply.header(checksumHeader(info.checksum.algorithm), info.checksum.value);
  return ctx.reply.code(200).header('etag', `"${info.etag}"`).send();
}

export async function deleteObject(ctx: S3Context) {
  await ctx.bucket();
  refuseVersion(ctx);
  await ctx.store.delete(ctx.place);
  return ctx.reply.code(204).send();
}

async function copyObject(ctx: S3Context) {
  const source = copySource(header(ctx.raw, 'x-amz-copy-source') ?? '');
  await ctx.other('s3:GetObject', source);
  await ctx.bucket();
  const replaced = header(ctx.raw, 'x-amz-metadata-directive') === 'REPLACE' ? putOptions(ctx) : undefined;
  const { info, body } = await ctx.store.get(source);
  try {
    const { contentType, headers, metadata, checksum } = info;
    const options = replaced ?? { contentType, headers, metadata };
    const copied = await ctx.store.put(ctx.place, body, { ...options, checksum: () => checksum });
    return ctx.xml(writeXml('CopyObjectResult', { LastModified: copied.lastModified, ETag: `"${copied.etag}"` }));
  } finally {
    body.destroy();
  }
}

function copySource(text: string): ObjectPlace {
  const match = /^\/?([^/?]+)\/([^?]+)$/.exec(text);
  try {
    if (match?.[1] && match[2]) return { bucket: decodeURIComponent(match[1]), key: decodeURIComponent(match[2]) };
  } catch {
    // Said below.
  }
  throw new ObjectError('InvalidArgument', 'x-amz-copy-source must be bucket/key, with the key escaped.');
}

/** What describes the object, from the headers of its upload. */
export function putOptions({ raw }: S3Context): PutOptions {
  const metadata: Record<string, string> = {};
  let bytes = 0;
  for (const name of Object.keys(raw.headers)) {
    if (!name.startsWith(META)) continue;
    const value = header(raw, name) ?? '';
    metadata[name.slice(META.length)] = value;
    bytes += name.length - META.length + Buffer.byteLength(value);
  }
  if (bytes > MAX_METADATA_BYTES) {
    throw new ObjectError('InvalidRequest', `The metadata of an object may have ${MAX_METADATA_BYTES} bytes.`);
  }
  const headers: Record<string, string> = {};
  for (const name of KEPT) {
    // `aws-chunked` was the encoding of the way here, not of the object.
    const value = header(raw, name)?.replace(/(^|,\s*)aws-chunked(,\s*|$)/g, '$1');
    if (value) headers[name] = value;
  }
  return { contentType: header(raw, 'content-type') ?? 'binary/octet-stream', headers, metadata };
}

function describe({ reply }: S3Context, info: ObjectInfo): void {
  reply.headers({
    etag: `"${info.etag}"`,
    'last-modified': info.lastModified.toUTCString(),
    'accept-ranges': 'bytes',
    'content-type': info.contentType ?? 'binary/octet-stream',
    ...info.headers,
  });
  for (const [name, value] of Object.entries(info.metadata)) reply.header(META + name, value);
}

function addChecksum({ raw, reply }: S3Context, { checksum }: ObjectInfo): FastifyReply {
  if (!checksum || header(raw, 'x-amz-checksum-mode')?.toUpperCase() !== 'ENABLED') return reply;
  return reply.header(checksumHeader(checksum.algorithm), checksum.value).header('x-amz-checksum-type', 'FULL_OBJECT');
}

/** RFC 9110, 13.2.2, for GET and HEAD. */
function checkConditions({ raw }: S3Context, info: ObjectInfo): void {
  const match = header(raw, 'if-match');
  const noneMatch = header(raw, 'if-none-match');
  const modified = Math.floor(info.lastModified.getTime() / 1000) * 1000;
  const failed = new ObjectError('PreconditionFailed', 'At least one of the pre-conditions you specified did not hold');
  if (match !== undefined) {
    if (!names(match, info.etag)) throw failed;
  } else if (modified > Date.parse(header(raw, 'if-unmodified-since') ?? '')) throw failed;
  const unchanged = new ObjectError('NotModified', 'Not Modified');
  if (noneMatch !== undefined) {
    if (names(noneMatch, info.etag)) throw unchanged;
  } else if (modified <= Date.parse(header(raw, 'if-modified-since') ?? '')) throw unchanged;
}

function names(condition: string, etag: string): boolean {
  return condition.split(',').some((one) => one.trim() === '*' || one.trim().replace(/^(W\/)?"|"$/g, '') === etag);
}

/** Buckets here have no versions; S3 calls the only one `null`. */
function refuseVersion({ query }: S3Context): void {
  const version = query.get('versionId');
  if (version !== null && version !== 'null') throw new ObjectError('NoSuchVersion', 'Objects here have no versions.');
}
