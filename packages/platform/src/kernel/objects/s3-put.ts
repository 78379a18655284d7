import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { ObjectPlace } from './object-store.ts';
import type { PutParameters } from './s3-store.ts';

/** What is held in memory at a time, in bytes; S3 wants 5 MiB at least. */
const PART_BYTES = 8 << 20;

/**
 * Stores a body of unknown length: in one request when it fits into a part, else in parts. An error of the body leaves no
 * object and no upload. Returns the ETag and the bytes.
 */
export async function putInParts(
  client: S3Client,
  place: ObjectPlace,
  body: AsyncIterable<Uint8Array>,
  parameters: PutParameters,
): Promise<{ etag: string; size: number }> {
  const target = { Bucket: place.bucket, Key: place.key };
  const pieces = piecesOf(body);
  const first = await pieces.next();
  // Also read to know that the first is the last, and that the body ended well.
  const second = first.done ? first : await pieces.next();
  if (second.done) {
    const bytes = first.done ? new Uint8Array() : first.value;
    const { ETag = '' } = await client.send(new PutObjectCommand({ ...target, ...parameters, Body: bytes }));
    return { etag: ETag.replaceAll('"', ''), size: bytes.length };
  }
  const { IfNoneMatch, ...described } = parameters;
  const { UploadId } = await client.send(new CreateMultipartUploadCommand({ ...target, ...described }));
  const upload = { ...target, UploadId };
  const Parts: CompletedPart[] = [];
  let size = 0;
  const send = async (bytes: Uint8Array): Promise<void> => {
    const PartNumber = Parts.length + 1;
    const { ETag } = await client.send(new UploadPartCommand({ ...upload, PartNumber, Body: bytes }));
    Parts.push({ PartNumber, ETag });
    size += bytes.length;
  };
  try {
    if (!first.done) await send(first.value);
    await send(second.value);
    for await (const piece of pieces) await send(piece);
    const complete = new CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts }, IfNoneMatch });
    const { ETag = '' } = await client.send(complete);
    return { etag: ETag.replaceAll('"', ''), size };
  } catch (error) {
    await client.send(new AbortMultipartUploadCommand(upload)).catch(() => {});
    throw error;
  }
}

async function* piecesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body) {
    for (let at = 0; at < part.length; ) {
      const piece = part.subarray(at, at + PART_BYTES - bytes);
      parts.push(piece);
      bytes += piece.length;
      at += piece.length;
      if (bytes === PART_BYTES) {
        yield Buffer.concat(parts);
        parts = [];
        bytes = 0;
      }
    }
  }
  if (bytes > 0) yield Buffer.concat(parts);
  return undefined;
}
