import { join } from 'node:path';
import { S3Client } from '@aws-sdk/client-s3';
import type { Config } from './config.ts';
import type { Clock } from './kernel/clock.ts';
import {
  createS3Store,
  guardedStore,
  type ObjectLimits,
  type ObjectStore,
  openDirectoryStore,
} from './kernel/objects/index.ts';

export interface ObjectParts {
  clock: Clock;
  limits: ObjectLimits;
  /** Throws while the disk has no room for anything new. */
  needRoom(): void;
}

/** Where `s3://` places are: the embedded directory, or the S3 endpoint that the configuration names. */
export async function openObjects(config: Config, accountId: string, parts: ObjectParts): Promise<ObjectStore> {
  const { endpoint, accessKeyId, secretAccessKey } = config.objects;
  if (endpoint === undefined) {
    const { clock, limits, needRoom } = parts;
    return guardedStore(await openDirectoryStore({ directory: join(config.data, 'objects'), clock, limits }), needRoom);
  }
  const credentials =
    accessKeyId !== undefined && secretAccessKey !== undefined ? { accessKeyId, secretAccessKey } : undefined;
  const client = new S3Client({
    endpoint,
    region: config.region,
    forcePathStyle: true,
    ...(credentials ? { credentials } : {}),
  });
  return createS3Store({ client, owner: accountId });
}
