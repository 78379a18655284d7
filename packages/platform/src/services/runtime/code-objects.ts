import type { Readable } from 'node:stream';
import { errors } from '@agentplatform/contract';
import { ObjectError } from '../../kernel/objects/errors.ts';
import type { ObjectStore } from '../../kernel/objects/object-store.ts';

/** An object's bytes for the account that owns its bucket; another's bucket is as good as none. Undefined when nothing is there. */
export async function readOwnObject(
  store: ObjectStore,
  accountId: string,
  place: { bucket: string; key: string; versionId?: string },
): Promise<Readable | undefined> {
  if (place.versionId !== undefined && place.versionId !== 'null') {
    throw errors.invalidField(
      'agentRuntimeArtifact.codeConfiguration.code.s3.versionId',
      'names a version, and this store keeps none; upload under another key instead',
    );
  }
  const bucket = await store.bucket(place.bucket);
  if (bucket?.owner !== accountId) return undefined;
  try {
    return (await store.get({ bucket: place.bucket, key: place.key })).body;
  } catch (error) {
    if (error instanceof ObjectError && error.code === 'NoSuchKey') return undefined;
    throw error;
  }
}
