import { createHash, hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { errors } from '@agentplatform/contract';
import { ImageError, type Images, imageProblem, withZip, type ZipsDeps } from '../../kernel/images/index.ts';
import type { SandboxProvider } from '../../kernel/sandbox/index.ts';
import type { Caller } from '../../kernel/service.ts';
import type { CodePlace, FunctionCode, PlatformFunction } from './function.ts';
import { type Members, text } from './function-fields.ts';
import { functionRuntime } from './function-runtimes.ts';

export interface FunctionImagesDeps extends ZipsDeps {
  images: Pick<Images, 'fromCode' | 'reserve'>;
  provider: Pick<SandboxProvider, 'stage'>;
}

/** Largest zip that a call brings itself, bytes: it is in memory whole. */
const MAX_INLINE_BYTES = 16 * 2 ** 20;
/** Largest call, in bytes: the zip in base64, and the other fields. */
export const MAX_CALL_BYTES = Math.ceil((MAX_INLINE_BYTES * 4) / 3) + 64 * 1024;

/** Where the code of a call is: in the call, or in a bucket that the caller may read. Rejects with ValidationException and AccessDeniedException. */
export async function codeSource(call: Members, at: string, caller: Caller): Promise<CodePlace | Buffer> {
  const { ZipFile, S3Bucket, S3Key, S3ObjectVersion } = call;
  const bucket = text(`${at}S3Bucket`, S3Bucket, 63);
  const key = text(`${at}S3Key`, S3Key, 1024);
  const versionId = text(`${at}S3ObjectVersion`, S3ObjectVersion, 1024);
  if ((ZipFile === undefined) === (bucket === undefined))
    throw errors.invalidField(`${at}ZipFile`, 'or S3Bucket with S3Key must be given, and not both');
  if (bucket !== undefined) {
    if (!key) throw errors.invalidField(`${at}S3Key`, 'must be given with S3Bucket');
    const object = `arn:aws:s3:::${bucket}/${key}`;
    await caller.require('s3:GetObject', object);
    if (versionId !== undefined) await caller.require('s3:GetObjectVersion', object);
    return { bucket, key, ...(versionId === undefined ? {} : { versionId }) };
  }
  if (typeof ZipFile !== 'string') throw errors.invalidField(`${at}ZipFile`, 'must be a zip in base64');
  const zip = Buffer.from(ZipFile, 'base64');
  if (zip.length <= MAX_INLINE_BYTES) return zip;
  throw errors.quota(`${at}ZipFile has more than ${MAX_INLINE_BYTES} bytes.`, {
    remedy: 'Put the zip into a bucket, and name it: S3Bucket and S3Key.',
  });
}

/** The images that functions run on. */
export class FunctionImages {
  readonly #deps: FunctionImagesDeps;

  constructor(deps: FunctionImagesDeps) {
    this.#deps = deps;
  }

  /** Makes the image of a zip, and unpacks it, so that the first event does not wait for it. Rejects with what is wrong with the zip, as ValidationException. */
  async make(
    from: CodePlace | Buffer,
    runtime: string,
    { accountId, signal }: { accountId: string; signal: AbortSignal },
  ): Promise<FunctionCode> {
    const field = 'Code';
    try {
      return await withZip(from, { accountId, field, signal }, this.#deps, async (zip) => {
        const { images, provider } = this.#deps;
        const image = await images.fromCode({ zip, runtime: codeRuntime(runtime), accountId, signal });
        await provider.stage({ digest: image.digest, askedBy: accountId }, signal);
        const { sha256, bytes } = Buffer.isBuffer(from)
          ? { sha256: hash('sha256', from, 'base64'), bytes: from.length }
          : await measured(zip);
        return { imageDigest: image.digest, sha256, bytes, ...(Buffer.isBuffer(from) ? {} : { place: from }) };
      });
    } catch (error) {
      throw error instanceof ImageError ? imageProblem(error, field) : error;
    }
  }

  /** Brings the image to this machine: one that another server made of an object is made again here, where that has not changed. */
  async stage({ code, runtime, accountId }: PlatformFunction, signal: AbortSignal): Promise<void> {
    const { provider } = this.#deps;
    try {
      await provider.stage({ digest: code.imageDigest }, signal);
    } catch (error) {
      if (!(error instanceof ImageError) || error.reason !== 'not-found' || !code.place) throw error;
      const made = await this.make(code.place, runtime, { accountId, signal });
      if (made.imageDigest !== code.imageDigest) throw error;
    }
  }
}

function codeRuntime(runtime: string): string {
  return functionRuntime(runtime)?.code ?? runtime;
}

async function measured(path: string): Promise<{ sha256: string; bytes: number }> {
  const digest = createHash('sha256');
  for await (const chunk of createReadStream(path)) digest.update(chunk);
  return { sha256: digest.digest('base64'), bytes: (await stat(path)).size };
}
