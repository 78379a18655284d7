import type { control } from '@agentplatform/contract';
import {
  ImageError,
  type Images,
  imageProblem,
  type RegistryCredentials,
  type ResolvedImage,
  repositoryArn,
  withZip,
  type ZipsDeps,
} from '../../kernel/images/index.ts';

export interface ArtifactDeps extends ZipsDeps {
  images: Images;
  /** Credentials that the account stored for the registry of an image. */
  registryCredentials(accountId: string, uri: string): Promise<RegistryCredentials | undefined>;
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
  { code, runtime, entryPoint }: control.CodeConfiguration,
  accountId: string,
  deps: ArtifactDeps,
  signal: AbortSignal,
): Promise<ResolvedImage> {
  const { bucket, prefix: key, versionId } = code.s3;
  const place = { bucket, key, ...(versionId ? { versionId } : {}) };
  const field = 'agentRuntimeArtifact.codeConfiguration.code.s3';
  return withZip(place, { accountId, field, signal }, deps, (zip) =>
    deps.images.fromCode({ zip, runtime, entryPoint, accountId, signal }),
  );
}

/** The field of a call that names an artifact, for errors. */
export function fieldOf(artifact: Artifact): string {
  return artifact.containerConfiguration
    ? 'agentRuntimeArtifact.containerConfiguration.containerUri'
    : 'agentRuntimeArtifact.codeConfiguration';
}
