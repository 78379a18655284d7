import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FakeClock } from '../fake-clock.ts';
import { openDirectoryStore } from './directory-store.ts';
import type { ObjectStore } from './object-store.ts';
import type { ObjectLimits } from './object-usage.ts';

const MIB = 2 ** 20;
const bucket = 'mine';
const limits: ObjectLimits = {
  bytesPerBucket: 16 * MIB,
  bytesPerAccount: 20 * MIB,
  objectsPerAccount: 5,
  bucketsPerAccount: 2,
};
let directory: string;
let store: ObjectStore;

const open = async (): Promise<void> => {
  store = await openDirectoryStore({ directory, clock: new FakeClock(), limits });
};
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'object-usage-'));
  await open();
  await store.createBucket(bucket, '111111111111');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

/** Parts of 1 MiB. */
async function* bytes(mib: number): AsyncIterable<Uint8Array> {
  for (let part = 0; part < mib; part += 1) yield Buffer.alloc(MIB, part);
}
const put = (key: string, mib: number, into = bucket) => store.put({ bucket: into, key }, bytes(mib));
const exceeded = (setting: string) => ({
  code: 'QuotaExceeded',
  status: 403,
  message: expect.stringContaining(setting),
});

it('keeps a bucket within its bytes, through replacing, deleting and a restart', async () => {
  await put('a', 6);
  await put('a', 8);
  await expect(put('b', 9)).rejects.toMatchObject(exceeded('quotas.objectBytesPerBucket'));
  // What was refused took nothing.
  await put('b', 7);
  await open();
  await expect(put('c', 2)).rejects.toMatchObject(exceeded('quotas.objectBytesPerBucket'));
  await store.delete({ bucket, key: 'a' });
  await store.delete({ bucket, key: 'a' });
  await put('c', 8);
});

it('counts many writes at once to one key once', async () => {
  for (let round = 0; round < 5; round += 1) await Promise.all([put('a', 2), put('a', 3), put('a', 1)]);
  await store.delete({ bucket, key: 'a' });
  await put('b', 15);
});

it('counts writes at once to a new key as one object', async () => {
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(Array.from({ length: 8 }, () => put('a', 0)));
    await store.delete({ bucket, key: 'a' });
  }
  for (const key of ['a', 'b', 'c', 'd', 'e']) await put(key, 0);
});

it('keeps an account within its bytes and its number of objects and buckets', async () => {
  await store.createBucket('second', '111111111111');
  await expect(store.createBucket('third', '111111111111')).rejects.toMatchObject({ code: 'TooManyBuckets' });
  await store.createBucket('other', '222222222222');
  await put('a', 12);
  await expect(put('a', 9, 'second')).rejects.toMatchObject(exceeded('quotas.objectBytesPerAccount'));
  await put('a', 12, 'other');
  for (const key of ['b', 'c', 'd', 'e']) await put(key, 0);
  await expect(put('f', 0)).rejects.toMatchObject(exceeded('quotas.objectsPerAccount'));
  await expect(store.createUpload({ bucket, key: 'f' })).rejects.toMatchObject(exceeded('quotas.objectsPerAccount'));
  await put('b', 0, 'other');
  await store.delete({ bucket, key: 'b' });
  await put('f', 0);
});

it('counts uploads that nobody completes, and lets a completed one take what its parts took', async () => {
  const place = { bucket, key: 'big' };
  const uploadId = await store.createUpload(place);
  const upload = { ...place, uploadId };
  await store.uploadPart(upload, 1, bytes(6));
  const first = await store.uploadPart(upload, 1, bytes(7));
  const second = await store.uploadPart(upload, 2, bytes(7));
  await expect(put('a', 3)).rejects.toMatchObject(exceeded('quotas.objectBytesPerBucket'));
  await expect(store.uploadPart(upload, 3, bytes(3))).rejects.toMatchObject(exceeded('quotas.objectBytesPerBucket'));
  await open();
  await expect(put('a', 3)).rejects.toMatchObject(exceeded('quotas.objectBytesPerBucket'));
  await store.completeUpload(upload, [first, second]);
  await expect(put('a', 3)).rejects.toMatchObject(exceeded('quotas.objectBytesPerBucket'));
  await put('a', 1);
  await store.delete(place);
  const again = await store.createUpload(place);
  await store.uploadPart({ ...place, uploadId: again }, 1, bytes(14));
  await store.abortUpload({ ...place, uploadId: again });
  await put('b', 14);
});

it('gives no room for what is written to a bucket that is deleted and made anew meanwhile', async () => {
  await store.createBucket('second', '111111111111');
  const { promise: goOn, resolve: proceed } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  async function* slowly(): AsyncIterable<Uint8Array> {
    yield* bytes(12);
    begin();
    await goOn;
  }
  const writing = store.put({ bucket, key: 'a' }, slowly()).catch((error: unknown) => error);
  await begun;
  await store.deleteBucket(bucket);
  await store.createBucket(bucket, '111111111111');
  // It takes its room for as long as it is written.
  await expect(put('b', 9, 'second')).rejects.toMatchObject(exceeded('quotas.objectBytesPerAccount'));
  proceed();
  expect(await writing).toBeInstanceOf(Error);
  await put('b', 9, 'second');
  await store.delete({ bucket: 'second', key: 'b' });
  await put('c', 16);
  await expect(put('d', 1)).rejects.toMatchObject(exceeded('quotas.objectBytesPerBucket'));
  await expect(put('d', 5, 'second')).rejects.toMatchObject(exceeded('quotas.objectBytesPerAccount'));
});
