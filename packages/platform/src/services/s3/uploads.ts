import { ObjectError, type UploadPlace } from '../../kernel/objects/index.ts';
import { checksumHeader, header } from './body.ts';
import type { S3Context } from './context.ts';
import { putOptions } from './objects.ts';
import { intParameter } from './request.ts';
import { childText, writeXml } from './xml.ts';

const MAX_PARTS = 10_000;
const MAX_LISTED = 1000;

export async function createUpload(ctx: S3Context) {
  await ctx.bucket();
  const UploadId = await ctx.store.createUpload(ctx.place, putOptions(ctx));
  return ctx.xml(writeXml('InitiateMultipartUploadResult', { Bucket: ctx.place.bucket, Key: ctx.place.key, UploadId }));
}

export async function uploadPart(ctx: S3Context) {
  await ctx.bucket();
  if (header(ctx.raw, 'x-amz-copy-source') !== undefined)
    throw new ObjectError('NotImplemented', 'UploadPartCopy is not served.');
  const partNumber = intParameter(ctx.query, 'partNumber', { min: 1, max: MAX_PARTS });
  const { body, checksum } = await ctx.body();
  const part = await ctx.store.uploadPart(uploadOf(ctx), partNumber, body);
  const verified = checksum();
  if (verified) ctx.reply.header(checksumHeader(verified.algorithm), verified.value);
  return ctx.reply.code(200).header('etag', `"${part.etag}"`).send();
}

export async function completeUpload(ctx: S3Context) {
  await ctx.bucket();
  const document = await ctx.xmlBody();
  const parts = document.children
    .filter((child) => child.name === 'Part')
    .map((child) => ({
      partNumber: Number(childText(child, 'PartNumber') ?? Number.NaN),
      etag: (childText(child, 'ETag') ?? '').replace(/^"|"$/g, ''),
    }));
  if (document.name !== 'CompleteMultipartUpload' || parts.some((part) => !Number.isInteger(part.partNumber))) {
    throw new ObjectError('MalformedXML', 'List the parts of the upload with PartNumber and ETag.');
  }
  const info = await ctx.store.completeUpload(uploadOf(ctx), parts, {
    onlyIfAbsent: header(ctx.raw, 'if-none-match') === '*',
  });
  const { bucket, key } = ctx.place;
  const Location = `/${bucket}/${encodeURIComponent(key).replace(/%2F/g, '/')}`;
  return ctx.xml(
    writeXml('CompleteMultipartUploadResult', { Location, Bucket: bucket, Key: key, ETag: `"${info.etag}"` }),
  );
}

export async function abortUpload(ctx: S3Context) {
  await ctx.bucket();
  await ctx.store.abortUpload(uploadOf(ctx));
  return ctx.reply.code(204).send();
}

export async function listParts(ctx: S3Context) {
  await ctx.bucket();
  const limit = Math.min(
    intParameter(ctx.query, 'max-parts', { min: 0, max: 2 ** 31, default: MAX_LISTED }),
    MAX_LISTED,
  );
  const marker = intParameter(ctx.query, 'part-number-marker', { min: 0, max: MAX_PARTS, default: 0 });
  const all = (await ctx.store.listParts(uploadOf(ctx))).filter((part) => part.partNumber > marker);
  const parts = all.slice(0, limit);
  return ctx.xml(
    writeXml('ListPartsResult', {
      Bucket: ctx.place.bucket,
      Key: ctx.place.key,
      UploadId: uploadOf(ctx).uploadId,
      PartNumberMarker: marker,
      NextPartNumberMarker: parts.at(-1)?.partNumber ?? marker,
      MaxParts: limit,
      IsTruncated: parts.length < all.length,
      Part: parts.map((part) => ({
        PartNumber: part.partNumber,
        LastModified: part.lastModified,
        ETag: `"${part.etag}"`,
        Size: part.size,
      })),
    }),
  );
}

export async function listUploads(ctx: S3Context) {
  await ctx.bucket();
  const prefix = ctx.query.get('prefix') ?? '';
  const uploads = (await ctx.store.listUploads(ctx.place.bucket)).filter((upload) => upload.key.startsWith(prefix));
  return ctx.xml(
    writeXml('ListMultipartUploadsResult', {
      Bucket: ctx.place.bucket,
      Prefix: prefix,
      IsTruncated: false,
      Upload: uploads.map(({ key, uploadId, startedAt }) => ({ Key: key, UploadId: uploadId, Initiated: startedAt })),
    }),
  );
}

function uploadOf(ctx: S3Context): UploadPlace {
  return { ...ctx.place, uploadId: ctx.query.get('uploadId') ?? '' };
}
