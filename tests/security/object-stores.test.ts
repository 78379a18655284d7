import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { ListBucketsCommand, S3Client } from '@aws-sdk/client-s3';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { createS3Store, type ObjectStore, openS3Client } from '../../packages/platform/src/kernel/objects/index.ts';
import { clientsOf } from '../support/clients.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { attempt, ENDLESS, MIB, openHostileServer, SENSELESS, SILENT, textOf } from './hostile-server.ts';

// An S3 endpoint is the operator's: it may be anywhere, and may be broken all the same.

const SECRET = 's3cret-0f-the-store';
const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: SECRET };
const place = { bucket: 'bucket', key: 'key' };

async function withStore<T>(endpoint: string, use: (store: ObjectStore) => Promise<T>): Promise<T> {
  const { client, close } = openS3Client({
    endpoint,
    region: 'us-east-1',
    credentials,
    clock: systemClock,
    answerMs: 500,
    idleMs: 500,
  });
  try {
    return await use(createS3Store({ client, owner: '111122223333' }));
  } finally {
    close();
  }
}

/** What the store is asked. */
const OPERATIONS: Record<string, (store: ObjectStore) => Promise<unknown>> = {
  list: (store) => store.list('bucket', { limit: 10 }),
  put: (store) => store.put(place, Readable.from([Buffer.from('x')])),
  head: (store) => store.head(place),
  get: async (store) => buffer((await store.get(place)).body),
};
/** What of an answer to HEAD, which has no body, cannot be used. */
const HEADLESS = ['never answers', 'stops within the head', 'an endless head', 'endless interim answers'];

describe.each(Object.entries(OPERATIONS))('a store asked to %s', (operation, ask) => {
  it('is given up in bounded time and bytes, whatever it does', async () => {
    const all = Object.entries({ ...SILENT, ...ENDLESS, ...SENSELESS });
    // The content of an object is streamed as long as it comes: whoever reads it bounds it.
    const bounded = all.filter(([name]) => operation !== 'get' || !(name in ENDLESS || name === 'one byte at a time'));
    for (const { name, origin, error, sent } of await attempt(Object.fromEntries(bounded), (at) =>
      withStore(at, ask),
    )) {
      if ((name in SILENT || name in ENDLESS) && (operation !== 'head' || HEADLESS.includes(name)))
        expect(error, `${name} at ${origin}`).toBeInstanceOf(Error);
      expect(textOf(error), name).not.toContain(SECRET);
      expect(sent, name).toBeLessThan(64 * MIB);
    }
  }, 60_000);
});

describe('a store', () => {
  it('would be waited for without end by the SDK alone', async () => {
    const server = await openHostileServer(() => undefined);
    const bare = new S3Client({ endpoint: server.origin, region: 'us-east-1', credentials, forcePathStyle: true });
    let over = false;
    const call = bare.send(new ListBucketsCommand({})).catch(() => undefined);
    void call.finally(() => {
      over = true;
    });
    await expect(withStore(server.origin, (store) => store.listBuckets())).rejects.toThrow('requestTimeout');
    expect(over).toBe(false);
    await server.close();
    await call;
    bare.destroy();
  });

  it('leads nowhere else', async () => {
    const elsewhere = await openHostileServer(() => undefined);
    const server = await openHostileServer(
      (socket) =>
        void socket.end(
          `HTTP/1.1 307 Temporary Redirect\r\nlocation: ${elsewhere.origin}/\r\ncontent-length: 0\r\n\r\n`,
        ),
    );
    await expect(withStore(server.origin, (store) => store.listBuckets())).rejects.toThrow();
    expect(server.heads.length).toBeGreaterThan(0);
    expect(elsewhere.heads).toEqual([]);
    await Promise.all([server.close(), elsewhere.close()]);
  });
});

describe('a platform', () => {
  let platform: TestPlatform | undefined;
  afterEach(() => platform?.dispose());

  it('ends while its store keeps it waiting', async () => {
    const silent = await openHostileServer(() => undefined);
    platform = await startTestPlatform({
      args: ['--sandbox', 'process', '--shutdown-grace-seconds', '1', '--objects-endpoint', silent.origin].concat([
        '--objects-access-key-id',
        credentials.accessKeyId,
      ]),
      env: { AGENTPLATFORM_OBJECTS_SECRET_ACCESS_KEY: SECRET },
    });
    const clients = clientsOf(platform);
    const before = silent.connections();
    const calls = Array.from({ length: 5 }, () => clients.s3.send(new ListBucketsCommand({})).catch(() => undefined));
    await expect.poll(silent.connections, { timeout: 30_000 }).toBeGreaterThan(before);
    expect(await platform.end()).toBe(0);
    await expect.poll(silent.connections, { timeout: 10_000 }).toBe(0);
    expect(platform.log()).not.toContain(SECRET);
    await Promise.all(calls);
    clients.close();
    await silent.close();
  }, 120_000);
});
