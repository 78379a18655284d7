import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { errors, type ServiceError } from '@agentplatform/contract';
import type { Images } from '../images.ts';

/** An object of an `s3://` place. */
export interface ZipPlace {
  bucket: string;
  key: string;
  versionId?: string;
}

/** An object of an `s3://` place as a stream, and its length in bytes; undefined when it does not exist. */
export type ReadObject = (
  accountId: string,
  place: ZipPlace,
  signal: AbortSignal,
) => Promise<{ body: Readable; bytes: number } | undefined>;

export interface ZipsDeps {
  images: Pick<Images, 'reserve'>;
  readObject: ReadObject;
  temporaryDirectory: string;
  /** Largest zip of code, bytes. */
  maxZipBytes: number;
}

/** Who names a zip, and in which field. */
export interface ZipCaller {
  accountId: string;
  field: string;
  signal: AbortSignal;
}

/**
 * Brings a zip of code, an object or what a call brought, to a file of this machine, which is there while `use` has it. Rejects with
 * ValidationException where there is none, and ServiceQuotaExceededException for one that is too large.
 */
export async function withZip<Result>(
  from: ZipPlace | Buffer,
  { accountId, field, signal }: ZipCaller,
  { images, readObject, temporaryDirectory, maxZipBytes }: ZipsDeps,
  use: (path: string) => Promise<Result>,
): Promise<Result> {
  const find = async ({ bucket, key, ...more }: ZipPlace) => {
    const object = await readObject(accountId, { bucket, key, ...more }, signal);
    if (object) return object;
    throw errors.invalidField(field, `names s3://${bucket}/${key}, where nothing is; upload the zip first`);
  };
  const { body, bytes } = Buffer.isBuffer(from)
    ? { body: Readable.from([from]), bytes: from.length }
    : await find(from);
  if (bytes > maxZipBytes) {
    body.destroy();
    throw tooLarge(field, maxZipBytes);
  }
  const directory = await mkdtemp(join(temporaryDirectory, 'code-'));
  try {
    const zip = join(directory, 'code.zip');
    // A store that is not our own may send more than it said.
    await images.reserve(accountId, bytes, () =>
      pipeline(body, (chunks) => atMost(chunks, maxZipBytes, field), createWriteStream(zip), { signal }),
    );
    return await use(zip);
  } finally {
    body.destroy();
    await rm(directory, { recursive: true, force: true });
  }
}

async function* atMost(chunks: AsyncIterable<Uint8Array>, maxBytes: number, field: string): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge(field, maxBytes);
    yield chunk;
  }
}

function tooLarge(field: string, maxBytes: number): ServiceError {
  return errors.quota(`${field}: the zip has more than ${maxBytes} bytes, which is the limit.`, {
    remedy: 'Leave out what the code does not need, or raise images.maxZipBytes.',
  });
}
