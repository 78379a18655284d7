import { join } from 'node:path';
import { S3Client } from '@aws-sdk/client-s3';
import type { Config } from './config.ts';
import type { Clock } from './kernel/clock.ts';
import { createS3Store, type ObjectStore, openDirectoryStore } from './kernel/objects/index.ts';

/** Where `s3://` places are: the embedded directory, or the S3 endpoint that the configuration names. */
export async function openObjects(config: Config, accountId: string, clock: Clock): Promise<ObjectStore> {
  const { endpoint, accessKeyId, secretAccessKey } = config.objects;
  if (endpoint === undefined) return openDirectoryStore({ directory: join(config.data, 'objects'), clock });
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
