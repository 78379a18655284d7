import { join } from 'node:path';
import type { Config } from './config.ts';
import type { Clock } from './kernel/clock.ts';
import {
  createS3Store,
  guardedStore,
  type ObjectLimits,
  type ObjectStore,
  openDirectoryStore,
  openS3Client,
} from './kernel/objects/index.ts';

export interface ObjectParts {
  clock: Clock;
  limits: ObjectLimits;
  /** Throws while the disk has no room for anything new. */
  needRoom(): void;
}

/** Where `s3://` places are: the embedded directory, or the S3 endpoint that the configuration names. */
export async function openObjects(
  config: Config,
  accountId: string,
  parts: ObjectParts,
): Promise<{ objects: ObjectStore; close(): void }> {
  const { endpoint, accessKeyId, secretAccessKey } = config.objects;
  if (endpoint === undefined) {
    const { clock, limits, needRoom } = parts;
    const store = await openDirectoryStore({ directory: join(config.data, 'objects'), clock, limits });
    return { objects: guardedStore(store, needRoom), close: () => undefined };
  }
  const credentials =
    accessKeyId !== undefined && secretAccessKey !== undefined ? { accessKeyId, secretAccessKey } : undefined;
  const { region } = config;
  const { client, close } = openS3Client({
    endpoint,
    region,
    clock: parts.clock,
    ...(credentials ? { credentials } : {}),
  });
  return { objects: createS3Store({ client, owner: accountId }), close };
}
