import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type control, errors, type ServiceError } from '@agentplatform/contract';
import {
  ImageError,
  type Images,
  type RegistryCredentials,
  type ResolvedImage,
  repositoryArn,
} from '../../kernel/images/index.ts';

/** An object of an `s3://` place as a stream, and its length in bytes; undefined when it does not exist. */
export type ReadObject = (
  accountId: string,
  place: { bucket: string; key: string; versionId?: string },
  signal: AbortSignal,
) => Promise<{ body: Readable; bytes: number } | undefined>;

export interface ArtifactDeps {
  images: Images;
  readObject: ReadObject;
  /** Credentials that the account stored for the registry of an image. */
  registryCredentials(accountId: string, uri: string): Promise<RegistryCredentials | undefined>;
  temporaryDirectory: string;
  /** Largest zip of code, bytes. */
  maxZipBytes: number;
}

type Artifact = control.AgentRuntimeArtifact;

/**
 * What a caller must be allowed beside the operation to name this artifact: the platform reads it with its own rights, and who
 * runs an agent can read all that is in it. An image of another registry is judged by that registry.
 */
export function rightsFor(artifact: Artifact, accountId: string): { action: string; resource: string }[] {
  const s3 = artifact.codeConfiguration?.code.s3;
  if (s3) return [{ action: 's3:GetObject', resource: `arn:aws:s3:::${s3.bucket}/${s3.prefix}` }];
  const uri = artifact.containerConfiguration?.containerUri ?? '';
  if (/^(oci|oci-archive|docker-archive):/.test(uri)) return [{ action: 'agentplatform:UseHostImage', resource: '*' }];
  const [, name] = /^platform\/([^:@]+)/.exec(uri) ?? [];
  if (name === undefined || name.startsWith('base/')) return [];
  return [{ action: 'agentplatform:PullImage', resource: repositoryArn(accountId, name) }];
}

/** Brings an artifact into the platform's image store, and gives its digest. Rejects with the wire's error for whatever is wrong with it. */
export async function resolveArtifact(
  artifact: Artifact,
  accountId: string,
  deps: ArtifactDeps,
  signal: AbortSignal,
): Promise<ResolvedImage> {
  try {
    if (artifact.containerConfiguration) {
      const uri = artifact.containerConfiguration.containerUri;
      const credentials = await deps.registryCredentials(accountId, uri);
      return await deps.images.resolve(uri, { accountId, signal, ...(credentials ? { credentials } : {}) });
    }
    return await resolveCode(artifact.codeConfiguration, accountId, deps, signal);
  } catch (error) {
    throw error instanceof ImageError ? imageProblem(error, fieldOf(artifact)) : error;
  }
}

async function resolveCode(
  code: control.CodeConfiguration,
  accountId: string,
  deps: ArtifactDeps,
  signal: AbortSignal,
): Promise<ResolvedImage> {
  const place = code.code.s3;
  const location = {
    bucket: place.bucket,
    key: place.prefix,
    ...(place.versionId ? { versionId: place.versionId } : {}),
  };
  const object = await deps.readObject(accountId, location, signal);
  const field = 'agentRuntimeArtifact.codeConfiguration.code.s3';
  if (!object)
    throw errors.invalidField(
      field,
      `names s3://${place.bucket}/${place.prefix}, where nothing is; upload the zip first`,
    );
  const { body, bytes } = object;
  if (bytes > deps.maxZipBytes) {
    body.destroy();
    throw tooLarge(field, deps.maxZipBytes);
  }
  const directory = await mkdtemp(join(deps.temporaryDirectory, 'code-'));
  try {
    const zip = join(directory, 'code.zip');
    // A store that is not our own may send more than it said.
    await deps.images.reserve(accountId, bytes, () =>
      pipeline(body, (chunks) => atMost(chunks, deps.maxZipBytes, field), createWriteStream(zip), { signal }),
    );
    return await deps.images.fromCode({ zip, runtime: code.runtime, entryPoint: code.entryPoint, accountId, signal });
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
  return errors.quota(`${field}: the zip has more than ${maxBytes} bytes, which is the most that is allowed.`, {
    remedy: 'Leave out what the agent does not need, or raise images.maxZipBytes.',
  });
}

/** The field of a call that names an artifact, for errors. */
export function fieldOf(artifact: Artifact): string {
  return artifact.containerConfiguration
    ? 'agentRuntimeArtifact.containerConfiguration.containerUri'
    : 'agentRuntimeArtifact.codeConfiguration';
}

/** An image's problem as the wire's error, at the field of the call that it is about. */
export function imageProblem(error: ImageError, field: string): ServiceError {
  switch (error.reason) {
    case 'too-large':
    case 'quota':
      return errors.quota(`${field}: ${error.message}`, { cause: error });
    case 'unauthorized':
      return errors.accessDenied(`${field}: ${error.message}`, { cause: error });
    case 'storage':
      return errors.unavailable(error.message, { cause: error });
    default:
      return errors.validation(`${field}: ${error.message}`, {
        fieldList: [{ name: field, message: error.message }],
        cause: error,
      });
  }
}
