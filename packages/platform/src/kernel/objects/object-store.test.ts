import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startS3, type TestS3 } from '../../services/s3/testing/s3-server.ts';
import { systemClock } from '../clock.ts';
import { openDirectoryStore } from './directory-store.ts';
import type { ObjectStore } from './object-store.ts';
import { createS3Store } from './s3-store.ts';

const OWNER = '111122223333';
const KEYS = [
  ...[
    'a',
    'a/b',
    'a/b/',
    'a//b',
    '/leading',
    'trailing/',
    '.',
    '..',
    '../../etc/passwd',
    'a/../b',
    './x',
    '~',
    '%2e%2e',
    'con',
  ],
  ...[
    'UPPER',
    'upper',
    'with space',
    'plus+sign',
    'percent%20',
    'quote"\'&<>',
    'tab\tnew\nline',
    'ümläut',
    'u\u0308',
    '日本語/ファイル',
    '🦊/🐾',
  ],
  ...[
    'x'.repeat(1024),
    `${'é'.repeat(100)}/${'long'.repeat(60)}`,
    'y'.repeat(80),
    `${'y'.repeat(80)}/z`,
    `${'y'.repeat(80)}-`,
  ],
];

describe.each(['directory', 's3'] as const)('object store: %s', (kind) => {
  let store: ObjectStore;
  let stop: () => Promise<unknown>;
  let buckets = 0;

  beforeAll(async () => {
    if (kind === 'directory') {
      const directory = await mkdtemp(join(tmpdir(), 'agentplatform-objects-'));
      store = await openDirectoryStore({ directory, clock: systemClock });
      stop = () => rm(directory, { recursive: true, force: true });
    } else {
      const server: TestS3 = await startS3();
      store = createS3Store({ client: server.client(), owner: OWNER });
      stop = () => server.stop();
    }
  });
  afterAll(() => stop());

  const newBucket = async (): Promise<string> => {
    const name = `bucket-${++buckets}`;
    await store.createBucket(name, OWNER);
    return name;
  };
  const text = async function* (...parts: string[]): AsyncGenerator<Uint8Array> {
    for (const part of parts) yield Buffer.from(part);
  };
  const read = async (bucket: string, key: string) =>
    (await buffer((await store.get({ bucket, key })).body)).toString();

  test('buckets are made once, listed, and removed when empty', async () => {
    const bucket = await newBucket();
    await expect(store.createBucket(bucket, OWNER)).rejects.toMatchObject({ code: 'BucketAlreadyOwnedByYou' });
    await expect(store.createBucket('No_Bucket', OWNER)).rejects.toMatchObject({ code: 'InvalidBucketName' });
    expect(await store.bucket(bucket)).toMatchObject({ name: bucket, owner: OWNER, createdAt: expect.any(Date) });
    expect(await store.bucket('nothing-here')).toBeUndefined();
    expect((await store.listBuckets()).map((one) => one.name)).toContain(bucket);
    await store.put({ bucket, key: 'deep/down/x' }, text('1'));
    await expect(store.deleteBucket(bucket)).rejects.toMatchObject({ code: 'BucketNotEmpty' });
    await store.delete({ bucket, key: 'deep/down/x' });
    await store.deleteBucket(bucket);
    expect(await store.bucket(bucket)).toBeUndefined();
    await expect(store.deleteBucket(bucket)).rejects.toMatchObject({ code: 'NoSuchBucket' });
  });

  test('an object comes back with all that was said of it', async () => {
    const bucket = await newBucket();
    const about = {
      contentType: 'text/x-test',
      headers: { 'cache-control': 'no-store', 'content-language': 'de' },
      metadata: { colour: 'blue', 'a-b': 'c d' },
    };
    const put = await store.put({ bucket, key: 'k' }, text('hello, ', 'world'), about);
    expect(put).toMatchObject({ key: 'k', size: 12, etag: 'e4d7f1b4ed2e42d15898f4b27b019da4', ...about });
    const { info, body, range } = await store.get({ bucket, key: 'k' });
    expect(range).toBeUndefined();
    expect((await buffer(body)).toString()).toBe('hello, world');
    for (const seen of [info, await store.head({ bucket, key: 'k' })]) {
      expect(seen).toMatchObject({ key: 'k', size: 12, etag: put.etag, ...about });
      expect(Math.abs((seen?.lastModified.getTime() ?? 0) - Date.now())).toBeLessThan(60_000);
    }
    await store.put({ bucket, key: 'k' }, text());
    expect(await read(bucket, 'k')).toBe('');
    expect(await store.head({ bucket, key: 'k' })).toMatchObject({ size: 0, etag: 'd41d8cd98f00b204e9800998ecf8427e' });
  });

  test('every key is a key of its own, listed as it was given, in the order of its bytes', async () => {
    const bucket = await newBucket();
    for (const key of KEYS) await store.put({ bucket, key }, text(`content of ${key}`));
    for (const key of KEYS) expect(await read(bucket, key)).toBe(`content of ${key}`);
    const sorted = [...KEYS].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect((await store.list(bucket, { limit: 1000 })).objects.map((one) => one.key)).toEqual(sorted);
    const paged: string[] = [];
    for (let token: string | undefined; ; ) {
      const page = await store.list(bucket, { limit: 4, token });
      paged.push(...page.objects.map((one) => one.key));
      token = page.next;
      if (token === undefined) break;
    }
    expect(paged).toEqual(sorted);
    for (const key of KEYS) await store.delete({ bucket, key });
    expect(await store.list(bucket, { limit: 1000 })).toEqual({ objects: [], commonPrefixes: [] });
    await store.deleteBucket(bucket);
  });

  test('keys that no object can have are refused', async () => {
    const bucket = await newBucket();
    for (const key of ['', 'x'.repeat(1025), 'é'.repeat(513), '\ud800']) {
      await expect(store.put({ bucket, key }, text('x'))).rejects.toMatchObject({ code: 'KeyTooLongError' });
    }
  });

  test('what is missing is named', async () => {
    const bucket = await newBucket();
    await expect(store.get({ bucket, key: 'none' })).rejects.toMatchObject({ code: 'NoSuchKey' });
    expect(await store.head({ bucket, key: 'none' })).toBeUndefined();
    await store.delete({ bucket, key: 'none' });
    for (const place of [{ bucket: 'no-such-bucket', key: 'k' }]) {
      await expect(store.get(place)).rejects.toMatchObject({ code: 'NoSuchBucket' });
      await expect(store.head(place)).rejects.toMatchObject({ code: 'NoSuchBucket' });
      await expect(store.put(place, text('x'))).rejects.toMatchObject({ code: 'NoSuchBucket' });
      await expect(store.list(place.bucket, { limit: 1 })).rejects.toMatchObject({ code: 'NoSuchBucket' });
    }
  });

  test('a range gives its bytes', async () => {
    const bucket = await newBucket();
    const place = { bucket, key: 'digits' };
    await store.put(place, text('0123456789'));
    const ask = async (range: Parameters<ObjectStore['get']>[1]) => {
      const { body, range: given, info } = await store.get(place, range);
      return { text: (await buffer(body)).toString(), ...given, size: info.size };
    };
    expect(await ask({ first: 2, last: 4 })).toEqual({ text: '234', first: 2, last: 4, size: 10 });
    expect(await ask({ first: 7 })).toEqual({ text: '789', first: 7, last: 9, size: 10 });
    expect(await ask({ first: 8, last: 99 })).toEqual({ text: '89', first: 8, last: 9, size: 10 });
    expect(await ask({ suffix: 3 })).toEqual({ text: '789', first: 7, last: 9, size: 10 });
    expect(await ask({ suffix: 99 })).toEqual({ text: '0123456789', first: 0, last: 9, size: 10 });
    await expect(ask({ first: 10 })).rejects.toMatchObject({ code: 'InvalidRange' });
    await expect(ask({ suffix: 0 })).rejects.toMatchObject({ code: 'InvalidRange' });
  });

  test('a body that fails at its end leaves what was there, and no trace', async () => {
    const bucket = await newBucket();
    const failing = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(100_000, 'x');
      throw new Error('checksum does not agree');
    };
    await store.put({ bucket, key: 'kept' }, text('before'));
    for (const key of ['kept', 'new']) {
      await expect(store.put({ bucket, key }, failing())).rejects.toThrow('checksum does not agree');
    }
    expect(await read(bucket, 'kept')).toBe('before');
    expect((await store.list(bucket, { limit: 9 })).objects.map((one) => one.key)).toEqual(['kept']);
  });

  test('onlyIfAbsent: of many writers one wins', async () => {
    const bucket = await newBucket();
    const puts = Array.from({ length: 6 }, (_, n) =>
      store.put({ bucket, key: 'a/b' }, text(`${n}`), { onlyIfAbsent: true }),
    );
    const results = await Promise.allSettled(puts);
    expect(results.filter((one) => one.status === 'fulfilled')).toHaveLength(1);
    for (const one of results)
      if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'PreconditionFailed' });
  });

  test('a list shows folders as common prefixes', async () => {
    const bucket = await newBucket();
    for (const key of ['a', 'b/1', 'b/2', 'b/c/3', 'b-', 'c', 'd/e/f']) await store.put({ bucket, key }, text(key));
    const list = async (options: Partial<Parameters<ObjectStore['list']>[1]>) => {
      const page = await store.list(bucket, { limit: 1000, ...options });
      return [page.objects.map((one) => one.key), page.commonPrefixes];
    };
    expect(await list({ delimiter: '/' })).toEqual([
      ['a', 'b-', 'c'],
      ['b/', 'd/'],
    ]);
    expect(await list({ delimiter: '/', prefix: 'b' })).toEqual([['b-'], ['b/']]);
    expect(await list({ delimiter: '/', prefix: 'b/' })).toEqual([['b/1', 'b/2'], ['b/c/']]);
    expect(await list({ prefix: 'b/c' })).toEqual([['b/c/3'], []]);
    expect(await list({ startAfter: 'b/1' })).toEqual([['b/2', 'b/c/3', 'c', 'd/e/f'], []]);
    expect(await list({ prefix: 'nothing' })).toEqual([[], []]);
    expect(await list({ limit: 0 })).toEqual([[], []]);
    const pages: unknown[] = [];
    for (let token: string | undefined; ; ) {
      const page = await store.list(bucket, { delimiter: '/', limit: 2, token });
      pages.push([...page.objects.map((one) => one.key), ...page.commonPrefixes]);
      token = page.next;
      if (token === undefined) break;
    }
    expect(pages).toEqual([['a', 'b-'], ['c', 'b/'], ['d/']]);
    await expect(store.list(bucket, { limit: 1, token: 'made up' })).rejects.toMatchObject({ code: 'InvalidArgument' });
  });

  test('an upload in parts becomes one object', async () => {
    const bucket = await newBucket();
    const place = { bucket, key: 'big/object' };
    const uploadId = await store.createUpload(place, { contentType: 'application/x-big', metadata: { n: '3' } });
    const upload = { ...place, uploadId };
    const bytes = [randomBytes(5 << 20), randomBytes(5 << 20), randomBytes(10)];
    const one = async function* (data: Uint8Array): AsyncGenerator<Uint8Array> {
      yield data;
    };
    const parts = [];
    for (const index of [2, 0, 1])
      parts.push(await store.uploadPart(upload, index + 1, one(bytes[index] ?? Buffer.of())));
    parts.sort((a, b) => a.partNumber - b.partNumber);
    expect((await store.listParts(upload)).map(({ partNumber, size }) => [partNumber, size])).toEqual([
      [1, 5 << 20],
      [2, 5 << 20],
      [3, 10],
    ]);
    expect(await store.listUploads(bucket)).toMatchObject([{ uploadId, key: place.key }]);
    expect(await store.head(place)).toBeUndefined();
    const wrong = (list: { partNumber: number; etag: string }[]) => store.completeUpload(upload, list);
    await expect(wrong([...parts].reverse())).rejects.toMatchObject({ code: 'InvalidPartOrder' });
    await expect(wrong([{ partNumber: 1, etag: 'f'.repeat(32) }])).rejects.toMatchObject({ code: 'InvalidPart' });
    await expect(wrong([{ partNumber: 9, etag: parts[0]?.etag ?? '' }])).rejects.toMatchObject({ code: 'InvalidPart' });
    const info = await store.completeUpload(upload, parts);
    expect(info).toMatchObject({
      etag: expect.stringMatching(/^[0-9a-f]{32}-3$/),
      size: (10 << 20) + 10,
      contentType: 'application/x-big',
    });
    expect((await buffer((await store.get(place)).body)).equals(Buffer.concat(bytes))).toBe(true);
    expect(await store.head(place)).toMatchObject({ etag: info.etag, metadata: { n: '3' } });
    await expect(wrong(parts)).rejects.toMatchObject({ code: 'NoSuchUpload' });
  });

  test('an upload may be aborted, and small parts are refused but for the last', async () => {
    const bucket = await newBucket();
    const place = { bucket, key: 'k' };
    const upload = { ...place, uploadId: await store.createUpload(place) };
    const parts = [await store.uploadPart(upload, 1, text('small')), await store.uploadPart(upload, 2, text('last'))];
    await expect(store.completeUpload(upload, parts)).rejects.toMatchObject({ code: 'EntityTooSmall' });
    const replaced = await store.uploadPart(upload, 2, text('again'));
    expect((await store.listParts(upload))[1]?.etag).toBe(replaced.etag);
    await store.abortUpload(upload);
    await expect(store.uploadPart(upload, 1, text('x'))).rejects.toMatchObject({ code: 'NoSuchUpload' });
    await expect(store.abortUpload(upload)).rejects.toMatchObject({ code: 'NoSuchUpload' });
    await expect(store.listParts({ ...upload, uploadId: '../../..' })).rejects.toMatchObject({ code: 'NoSuchUpload' });
  });

  test('writers, readers and deleters at once see whole objects or none', async () => {
    const bucket = await newBucket();
    const place = { bucket, key: 'same/deep/place' };
    const work = Array.from({ length: 40 }, async (_, n) => {
      if (n % 4 === 0) return store.delete(place);
      if (n % 4 === 1) {
        const found = await store.get(place).catch((error: { code?: string }) => {
          expect(error.code).toBe('NoSuchKey');
        });
        if (!found) return;
        const bytes = await buffer(found.body);
        expect(new Set(bytes).size).toBe(1);
        expect(bytes.length).toBe(50_000);
        return;
      }
      const letter = String.fromCharCode(97 + (n % 26));
      await store.put(place, text(letter.repeat(25_000), letter.repeat(25_000)));
    });
    await Promise.all(work);
  });
});
