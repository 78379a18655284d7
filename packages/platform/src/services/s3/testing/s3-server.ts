import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { errors } from '@agentplatform/contract';
import { S3Client, type S3ClientConfig } from '@aws-sdk/client-s3';
import Fastify from 'fastify';
import { type Credential, createAuthenticator, createSpool } from '../../../kernel/auth/index.ts';
import { systemClock } from '../../../kernel/clock.ts';
import { served } from '../../../kernel/http/testing/serve-routes.ts';
import { type ObjectStore, openDirectoryStore } from '../../../kernel/objects/index.ts';
import { silent } from '../../../kernel/storage/testing/databases.ts';
import { s3Routes } from '../s3-routes.ts';

export const REGION = 'eu-central-1';
export const PREFIX = '/s3';

/** Two accounts, each with a key; an action in `denied` is refused to all. */
export interface TestS3 {
  endpoint: string;
  store: ObjectStore;
  directory: string;
  denied: Set<string>;
  /** The official client, path-style. */
  client(account?: 'ours' | 'theirs', config?: S3ClientConfig): S3Client;
  credentials: typeof OURS;
  stop(): Promise<void>;
}

const OURS = { accessKeyId: 'AKIAOURSOURSOURSOURS', secretAccessKey: 'our-secret', accountId: '111122223333' };
const THEIRS = { accessKeyId: 'AKIATHEIRSTHEIRSTHEI', secretAccessKey: 'their-secret', accountId: '444455556666' };

/** The S3 door on an embedded store, with real signatures, on a free port. */
export async function startS3(options: { directory?: string } = {}): Promise<TestS3> {
  const root = await mkdtemp(join(tmpdir(), 'agentplatform-s3-'));
  const directory = options.directory ?? join(root, 'objects');
  const store = await openDirectoryStore({ directory, clock: systemClock });
  const denied = new Set<string>();
  const known = new Map([OURS, THEIRS].map((one) => [one.accessKeyId, credentialOf(one)]));
  const authenticator = createAuthenticator({
    keys: { find: (id) => known.get(id) },
    clock: systemClock,
    region: REGION,
  });
  const spool = await createSpool({ dir: join(root, 'spool') });
  const app = Fastify({ routerOptions: { maxParamLength: 4096 } });
  await app.register(
    served([s3Routes({ store, prefix: PREFIX, region: REGION, log: silent, maxObjectBytes: 5 * 2 ** 30, spool })], {
      authenticator,
      spool,
      authorize: ({ action, resource }) => {
        if (denied.has(action)) throw errors.accessDenied(`${action} on ${resource} is not allowed.`);
      },
    }),
  );
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  const clients: S3Client[] = [];
  return {
    endpoint: `${origin}${PREFIX}`,
    store,
    directory,
    denied,
    credentials: OURS,
    client: (account = 'ours', config = {}) => {
      const credentials = account === 'ours' ? OURS : THEIRS;
      const endpoint = `${origin}${PREFIX}`;
      const client = new S3Client({
        region: REGION,
        endpoint,
        forcePathStyle: true,
        credentials,
        maxAttempts: 1,
        ...config,
      });
      clients.push(client);
      return client;
    },
    stop: async () => {
      for (const client of clients) client.destroy();
      app.server.closeAllConnections();
      await app.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

function credentialOf({ accessKeyId, secretAccessKey, accountId }: typeof OURS): Credential {
  const arn = `arn:aws:iam::${accountId}:user/tester`;
  return { secretAccessKey, principal: { kind: 'iam', accountId, arn, accessKeyId, tags: {} } };
}
