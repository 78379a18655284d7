import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import {
  CopyObjectCommand,
  CreateBucketCommand,
  DeleteObjectsCommand,
  GetObjectAclCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsCommand,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { testPython } from '../../../../../tests/support/python.ts';
import { ObjectError } from '../../kernel/objects/index.ts';
import { REGION, startS3, type TestS3 } from './testing/s3-server.ts';
import { sendRaw } from './testing/signed-request.ts';

let server: TestS3;
let client: S3Client;
const Bucket = 'the-bucket';

beforeAll(async () => {
  server = await startS3();
  client = server.client();
  await client.send(new CreateBucketCommand({ Bucket }));
});
afterAll(() => server.stop());

const read = async (Key: string) =>
  (await client.send(new GetObjectCommand({ Bucket, Key }))).Body?.transformToString();
const filler = (bytes: number) =>
  Readable.from(
    (function* () {
      const part = Buffer.alloc(1 << 16, 'x');
      for (let left = bytes; left > 0; left -= part.length) yield part.subarray(0, Math.min(left, part.length));
    })(),
  );

describe('the AWS SDK for JavaScript', () => {
  test.each(['CRC32', 'CRC32C', 'CRC64NVME', 'SHA1', 'SHA256'] as const)(
    'sends %s with buffers and streams, and checks it on the way back',
    async (algorithm) => {
      const bodies = [Buffer.from('whole'), Readable.from([Buffer.from('str'), Buffer.from('eam')])];
      for (const [n, Body] of bodies.entries()) {
        const Key = `checked/${algorithm}/${n}`;
        const ContentLength = n === 0 ? 5 : 6;
        const put = await client.send(
          new PutObjectCommand({ Bucket, Key, Body, ContentLength, ChecksumAlgorithm: algorithm }),
        );
        const sent = put[`Checksum${algorithm}`];
        expect(sent).toMatch(/=*$/);
        const back = await client.send(new GetObjectCommand({ Bucket, Key, ChecksumMode: 'ENABLED' }));
        expect(back[`Checksum${algorithm}`]).toBe(sent);
        expect(await back.Body?.transformToString()).toBe(n === 0 ? 'whole' : 'stream');
      }
    },
  );

  test('conditions, overrides, copies and deletions', async () => {
    const Key = 'conditions';
    const { ETag } = await client.send(
      new PutObjectCommand({ Bucket, Key, Body: 'v1', Metadata: { a: 'b' }, CacheControl: 'no-cache' }),
    );
    const status = (error: { $metadata: { httpStatusCode?: number } }) => error.$metadata.httpStatusCode;
    expect(await client.send(new GetObjectCommand({ Bucket, Key, IfNoneMatch: ETag })).catch(status)).toBe(304);
    expect(await client.send(new HeadObjectCommand({ Bucket, Key, IfMatch: '"other"' })).catch(status)).toBe(412);
    expect(
      await client
        .send(new GetObjectCommand({ Bucket, Key, IfModifiedSince: new Date(Date.now() + 9_000) }))
        .catch(status),
    ).toBe(304);
    expect(await client.send(new PutObjectCommand({ Bucket, Key, Body: 'v2', IfNoneMatch: '*' })).catch(status)).toBe(
      412,
    );
    const shown = await client.send(
      new GetObjectCommand({ Bucket, Key, ResponseContentType: 'text/override', IfMatch: ETag }),
    );
    expect(shown).toMatchObject({
      ContentType: 'text/override',
      CacheControl: 'no-cache',
      Metadata: { a: 'b' },
      ContentLength: 2,
    });
    shown.Body?.transformToByteArray();
    await client.send(new CopyObjectCommand({ Bucket, Key: 'copied ü', CopySource: `${Bucket}/${Key}` }));
    expect(await client.send(new HeadObjectCommand({ Bucket, Key: 'copied ü' }))).toMatchObject({
      Metadata: { a: 'b' },
      ETag,
    });
    const Objects = [{ Key }, { Key: 'copied ü' }, { Key: 'never' }];
    const deleted = await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
    expect(deleted.Deleted).toHaveLength(3);
    await expect(read(Key)).rejects.toMatchObject({ name: 'NoSuchKey' });
  });

  test('a copy that is refused leaves the file of its source open for nobody', async () => {
    const Key = 'source';
    await client.send(new PutObjectCommand({ Bucket, Key, Body: 'content' }));
    const copy = new CopyObjectCommand({ Bucket, Key: 'copy', CopySource: `${Bucket}/${Key}` });
    const got = vi.spyOn(server.store, 'get');
    const refused = vi.spyOn(server.store, 'put').mockRejectedValueOnce(new ObjectError('QuotaExceeded', 'Full.'));
    await expect(client.send(copy)).rejects.toMatchObject({ name: 'QuotaExceeded' });
    const source = await got.mock.results[0]?.value;
    expect(source.body.destroyed).toBe(true);
    got.mockRestore();
    refused.mockRestore();
  });

  test('ListObjects goes on after a key and after a folder', async () => {
    for (const Key of ['v1/a', 'v1/b/1', 'v1/b/2', 'v1/c'])
      await client.send(new PutObjectCommand({ Bucket, Key, Body: '' }));
    const shown: (string | undefined)[] = [];
    for (let Marker: string | undefined; ; ) {
      const page = await client.send(
        new ListObjectsCommand({ Bucket, Prefix: 'v1/', Delimiter: '/', MaxKeys: 1, Marker }),
      );
      shown.push(
        ...(page.Contents ?? []).map((one) => one.Key),
        ...(page.CommonPrefixes ?? []).map((one) => one.Prefix),
      );
      Marker = page.NextMarker;
      if (!page.IsTruncated) break;
    }
    expect(shown).toEqual(['v1/a', 'v1/b/', 'v1/c']);
  });

  test('what is not served is said, and never taken for something else', async () => {
    await client.send(new PutObjectCommand({ Bucket, Key: 'acl', Body: 'content' }));
    await expect(client.send(new GetObjectAclCommand({ Bucket, Key: 'acl' }))).rejects.toMatchObject({
      name: 'NotImplemented',
    });
    const tagging = await sendRaw(server, {
      method: 'PUT',
      path: `/${Bucket}/acl`,
      query: { tagging: '' },
      body: '<Tagging/>',
    });
    expect(tagging).toMatchObject({ status: 501, text: expect.stringContaining('<Code>NotImplemented</Code>') });
    expect(await read('acl')).toBe('content');
    expect(await sendRaw(server, { method: 'POST', path: `/${Bucket}` })).toMatchObject({ status: 405 });
  });

  test('200 MB stream in and out with flat memory', async () => {
    const bytes = 200 * 1024 * 1024;
    const before = process.memoryUsage().rss;
    let peak = 0;
    const watch = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss);
    }, 20);
    const put = new PutObjectCommand({ Bucket, Key: 'large', Body: filler(bytes), ContentLength: bytes });
    await client.send(put);
    const { Body } = await client.send(new GetObjectCommand({ Bucket, Key: 'large' }));
    let back = 0;
    if (Body instanceof Readable) for await (const part of Body) back += part.length;
    clearInterval(watch);
    expect(back).toBe(bytes);
    expect(peak - before).toBeLessThan(120 * 1024 * 1024);
  });
});

describe('what must not get through', () => {
  test('another account reaches nothing of ours', async () => {
    await client.send(new PutObjectCommand({ Bucket, Key: 'private', Body: 'secret' }));
    expect(await read('private')).toBe('secret');
    const theirs = server.client('theirs');
    const denied = { name: 'AccessDenied' };
    await expect(theirs.send(new GetObjectCommand({ Bucket, Key: 'private' }))).rejects.toMatchObject(denied);
    await expect(theirs.send(new PutObjectCommand({ Bucket, Key: 'private', Body: 'x' }))).rejects.toMatchObject(
      denied,
    );
    await expect(theirs.send(new ListObjectsCommand({ Bucket }))).rejects.toMatchObject(denied);
    await expect(
      theirs.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: [{ Key: 'private' }] } })),
    ).resolves.toMatchObject({
      Errors: [{ Code: 'AccessDenied' }],
    });
    await theirs.send(new CreateBucketCommand({ Bucket: 'their-bucket' }));
    const steal = new CopyObjectCommand({ Bucket: 'their-bucket', Key: 'k', CopySource: `${Bucket}/private` });
    await expect(theirs.send(steal)).rejects.toMatchObject(denied);
    await expect(theirs.send(new CreateBucketCommand({ Bucket }))).rejects.toMatchObject({
      name: 'BucketAlreadyExists',
    });
    expect((await theirs.send(new ListBucketsCommand({}))).Buckets?.map((one) => one.Name)).toEqual(['their-bucket']);
    expect(await read('private')).toBe('secret');
  });

  test('an action that policy denies', async () => {
    await client.send(new PutObjectCommand({ Bucket, Key: 'policy', Body: 'x' }));
    server.denied.add('s3:GetObject');
    await expect(read('policy')).rejects.toMatchObject({ name: 'AccessDenied' });
    await expect(
      client.send(new CopyObjectCommand({ Bucket, Key: 'k', CopySource: `${Bucket}/policy` })),
    ).rejects.toMatchObject({ name: 'AccessDenied' });
    server.denied.clear();
    expect(await read('policy')).toBe('x');
  });

  test('a request or a body that is not the signed one', async () => {
    const put = { method: 'PUT', path: `/${Bucket}/signed`, body: 'the body' };
    expect(await sendRaw(server, put)).toMatchObject({ status: 200 });
    const refused = async (alter: NonNullable<Parameters<typeof sendRaw>[1]['alter']>, code: string) => {
      const answer = await sendRaw(server, { ...put, alter });
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(answer.text).toContain(`<Code>${code}</Code>`);
    };
    await refused((sent) => {
      sent.body = 'the bodY';
    }, 'SignatureDoesNotMatch');
    await refused((sent) => {
      sent.path += '2';
    }, 'SignatureDoesNotMatch');
    await refused((sent) => {
      delete sent.headers.authorization;
    }, 'AccessDenied');
    await refused((sent) => {
      sent.headers['x-amz-date'] = '20200101T000000Z';
    }, 'SignatureDoesNotMatch');
    await refused((sent) => {
      sent.headers.authorization = sent.headers.authorization?.replace('AKIAOURS', 'AKIAYOUR') ?? '';
    }, 'InvalidAccessKeyId');
    // The path prefix is part of what is signed.
    await refused((sent) => {
      sent.path = sent.path.replace('/s3/', '/s3//');
    }, 'SignatureDoesNotMatch');
    expect(await read('signed')).toBe('the body');
    expect(await server.store.head({ bucket: Bucket, key: 'signed2' })).toBeUndefined();
  });

  test('a signature that leaves the body open', async () => {
    const open = await sendRaw(server, {
      method: 'PUT',
      path: `/${Bucket}/open`,
      body: 'x',
      alter: (sent) => {
        delete sent.headers['x-amz-content-sha256'];
      },
    });
    expect(open.status).toBeGreaterThanOrEqual(400);
    expect(await server.store.head({ bucket: Bucket, key: 'open' })).toBeUndefined();
  });

  test('a body that does not have its checksum, in a header or a trailer', async () => {
    const inHeader = { method: 'PUT', path: `/${Bucket}/sums`, body: '123456789' };
    const good = await sendRaw(server, { ...inHeader, headers: { 'x-amz-checksum-crc32': 'y/Q5Jg==' } });
    expect(good).toMatchObject({ status: 200, headers: { 'x-amz-checksum-crc32': 'y/Q5Jg==' } });
    const bad = await sendRaw(server, { ...inHeader, headers: { 'x-amz-checksum-crc32': 'y/Q5Jw==' } });
    expect(bad.text).toContain('<Code>BadDigest</Code>');
    const chunked = (crc: string) => ({
      method: 'PUT',
      path: `/${Bucket}/trailer`,
      headers: {
        'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
        'content-encoding': 'aws-chunked',
        'x-amz-decoded-content-length': '9',
        'x-amz-trailer': 'x-amz-checksum-crc32',
      },
      body: `5\r\n12345\r\n4\r\n6789\r\n0\r\nx-amz-checksum-crc32:${crc}\r\n\r\n`,
    });
    expect((await sendRaw(server, chunked('y/Q5Jw=='))).text).toContain('<Code>BadDigest</Code>');
    expect(await server.store.head({ bucket: Bucket, key: 'trailer' })).toBeUndefined();
    expect(await sendRaw(server, chunked('y/Q5Jg=='))).toMatchObject({ status: 200 });
    expect(await read('trailer')).toBe('123456789');
    expect((await server.store.head({ bucket: Bucket, key: 'trailer' }))?.headers).toEqual({});
    const short = chunked('y/Q5Jg==');
    const cut = await sendRaw(server, {
      ...short,
      headers: { ...short.headers, 'x-amz-decoded-content-length': '10' },
    });
    expect(cut.text).toContain('<Code>IncompleteBody</Code>');
  });

  test('keys that look like paths stay in their bucket', async () => {
    for (const path of ['/..%2f..%2f..%2fetc%2fpasswd', '/../../other', '/%2e%2e/%2e%2e/x']) {
      const answer = await sendRaw(server, { method: 'PUT', path: `/${Bucket}${path}`, body: 'x' });
      expect(answer.status).toBe(200);
    }
    expect((await readdir(server.directory)).sort()).toEqual(['the-bucket', 'their-bucket']);
    expect(
      (await sendRaw(server, { method: 'PUT', path: '/..%2f..%2ftmp/x', body: 'x' })).status,
    ).toBeGreaterThanOrEqual(400);
    expect(await sendRaw(server, { method: 'GET', path: `/${Bucket}/%ff` })).toMatchObject({ status: 400 });
  });

  test('documents with other schemas, too many keys or entities of their own', async () => {
    const md5 = (body: string) => createHash('md5').update(body).digest('base64');
    const post = (body: string) =>
      sendRaw(server, {
        method: 'POST',
        path: `/${Bucket}`,
        query: { delete: '' },
        headers: { 'content-md5': md5(body) },
        body,
      });
    const many = `<Delete>${'<Object><Key>k</Key></Object>'.repeat(1001)}</Delete>`;
    for (const body of [
      '',
      '<Delete/>',
      '<Other><Object><Key>k</Key></Object></Other>',
      many,
      '<!DOCTYPE x [<!ENTITY a "b">]><Delete/>',
    ]) {
      expect((await post(body)).text).toContain('<Code>MalformedXML</Code>');
    }
    expect((await post('<Delete><Object><Key>k</Key></Object></Delete>')).status).toBe(200);
  });
});

test('a request that is signed for S3 needs no prefix; one that is not reaches nothing there', async () => {
  const origin = new URL(server.endpoint).origin;
  const bare = server.client('ours', { endpoint: origin });
  await bare.send(new CreateBucketCommand({ Bucket: 'runtimes' }));
  await bare.send(new PutObjectCommand({ Bucket: 'runtimes', Key: 'a b/ü?', Body: 'bare' }));
  const { Body } = await client.send(new GetObjectCommand({ Bucket: 'runtimes', Key: 'a b/ü?' }));
  expect(await Body?.transformToString()).toBe('bare');
  expect((await bare.send(new ListBucketsCommand({}))).Buckets?.map(({ Name }) => Name)).toContain('runtimes');
  await bare.send(new DeleteObjectsCommand({ Bucket: 'runtimes', Delete: { Objects: [{ Key: 'a b/ü?' }] } }));
  await bare.send(new PutObjectCommand({ Bucket: 'runtimes', Key: 'k', Body: 'again' }));
  const presigned = { method: 'GET', path: 'runtimes/k', presign: 60 };
  expect(await sendRaw({ ...server, endpoint: origin }, presigned)).toMatchObject({ status: 200, text: 'again' });
  for (const path of ['runtimes/k', 'runtimes', 's3x/k'])
    expect((await fetch(`${origin}/${path}`)).status, path).toBe(404);
  const claimed = { authorization: 'AWS4-HMAC-SHA256 Credential=AKIAX/20260101/x/s3/aws4_request' };
  expect((await fetch(`${origin}/runtimes/k`, { headers: claimed })).status).toBe(400);
});

test('a presigned url works until it is altered', async () => {
  await client.send(new PutObjectCommand({ Bucket, Key: 'presigned key', Body: 'shared' }));
  const ask = { method: 'GET', path: `/${Bucket}/presigned%20key`, presign: 60 };
  expect(await sendRaw(server, ask)).toMatchObject({ status: 200, text: 'shared' });
  const alter: Parameters<typeof sendRaw>[1]['alter'] = (sent) => {
    sent.path = sent.path.replace('Expires=60', 'Expires=61');
  };
  expect(await sendRaw(server, { ...ask, alter })).toMatchObject({ status: 403 });
});

test('a full disk is named, leaves no half object, and needs no hand once there is room', async (context) => {
  if (userInfo().uid !== 0) return context.skip('needs root, to mount a small file system');
  const directory = await mkdtemp(join(tmpdir(), 'agentplatform-full-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'agentplatform-full', directory]);
  const small = await startS3({ directory });
  try {
    const own = small.client();
    await own.send(new CreateBucketCommand({ Bucket: 'full' }));
    const put = (Key: string, bytes: number) =>
      own.send(new PutObjectCommand({ Bucket: 'full', Key, Body: Buffer.alloc(bytes) }));
    await put('fits', 1 << 20);
    await expect(put('too-much', 8 << 20)).rejects.toMatchObject({
      name: 'InsufficientStorage',
      message: expect.stringContaining('no space left'),
    });
    expect((await small.store.list('full', { limit: 9 })).objects.map((one) => one.key)).toEqual(['fits']);
    await put('fits-again', 2 << 20);
  } finally {
    await small.stop();
    execFileSync('umount', ['-l', directory]);
    await rm(directory, { recursive: true });
  }
});

test('boto3 does its work unmodified', async (context) => {
  const python = await testPython();
  if (!python) return context.skip('boto3 cannot be had on this machine');
  const script = join(import.meta.dirname, 'testing/boto3_drive.py');
  const seen = await python.run(script, { ...server.credentials, endpoint: server.endpoint, region: REGION });
  expect(seen).toMatchObject({
    location: REGION,
    buckets: expect.arrayContaining(['boto']),
    put_checksum: 'NhCmhg==',
    got: ['hello', { colour: 'blue' }, 'text/x', 'NhCmhg=='],
    range: 'el',
    keys_v2: [true],
    keys_v1: [true],
    'algorithm CRC32': 'stored',
    'algorithm SHA1': 'stored',
    'algorithm SHA256': 'stored',
    paged: [10, 10, 6],
    folders: ['checked', 'ordner', 'pages'],
    big: [true, true],
    copy: 'hello',
    deleted: 3,
    errors: [
      ...[
        'NoSuchKey',
        '404',
        'NoSuchBucket',
        'BucketAlreadyOwnedByYou',
        'BucketNotEmpty',
        'NotImplemented',
        'BadDigest',
      ],
      'NoSuchUpload',
    ],
  });
});
