import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errors } from '@agentplatform/contract';
import fc from 'fast-check';
import Fastify from 'fastify';
import pino from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { AccessKeyStore } from '../../kernel/auth/index.ts';
import { type Clock, systemClock } from '../../kernel/clock.ts';
import { LowDiskError } from '../../kernel/disk-room.ts';
import { FakeClock } from '../../kernel/fake-clock.ts';
import type { Authorize } from '../../kernel/http/index.ts';
import { served } from '../../kernel/http/testing/serve-routes.ts';
import { digestOf, type ImagesRoom, MEDIA, machinePlatform } from '../../kernel/images/index.ts';
import { makeImage, makeIndex, otherArchitecture, writeLayout } from '../../kernel/images/testing/image.ts';
import { testImages } from '../../kernel/images/testing/images.ts';
import { haveSkopeo, skopeo } from '../../kernel/images/testing/skopeo.ts';
import { tempDir } from '../../kernel/images/testing/temp-dir.ts';
import { RegistryError } from './errors.ts';
import { parseRange } from './handlers.ts';
import { parseRegistryPath } from './route.ts';
import { RegistryServer } from './server.ts';
import type { UploadLimits } from './uploads.ts';

const here = machinePlatform().architecture;
const ALICE = `Basic ${Buffer.from('alice:pw').toString('base64')}`;
const BOB = `Basic ${Buffer.from('bob:pw').toString('base64')}`;
const ACCOUNTS: Record<string, string> = { alice: '111111111111', bob: '222222222222' };

interface Server {
  dir: string;
  host: string;
  images: ImagesRoom;
  call(
    method: string,
    path: string,
    init?: { as?: string; headers?: Record<string, string>; body?: RequestInit['body'] },
  ): Promise<Response>;
  push(name: string, content: Buffer, as?: string): Promise<string>;
}

async function serve(
  options: {
    limits?: Partial<UploadLimits>;
    accountBytes?: number;
    clock?: Clock;
    denied?: Set<string>;
    needRoom?: () => void;
  } = {},
): Promise<Server> {
  const dir = await tempDir();
  const images = await testImages(join(dir, 'data'), {
    collectGraceMs: 0,
    quotas: options.accountBytes === undefined ? {} : { accountBytes: options.accountBytes },
  });
  const app = Fastify({ forceCloseConnections: true });
  const registry = new RegistryServer({
    store: images.store,
    bases: images.bases,
    usage: images.usage,
    clock: options.clock ?? systemClock,
    log: pino({ level: 'silent' }),
    limits: options.limits,
    needRoom: options.needRoom ?? (() => undefined),
  });
  const find: AccessKeyStore['find'] = (user) => {
    const accountId = ACCOUNTS[user];
    const principal = { kind: 'iam', accountId: accountId ?? '', arn: user, accessKeyId: user, tags: {} } as const;
    return accountId === undefined ? undefined : { secretAccessKey: 'pw', principal };
  };
  const authorize: Authorize = ({ action, resource }) => {
    const [right, name] = [action.slice('agentplatform:'.length), resource.replace(/^.*:image\//, '')];
    if (options.denied?.has(`${right} ${name}`)) throw errors.accessDenied(`${right} of ${name}: not allowed.`);
  };
  await app.register(served([registry.routes], { keys: { find }, authorize }));
  await app.listen({ port: 0, host: '127.0.0.1' });
  onTestFinished(async () => {
    await app.close();
    await registry.close();
  });
  const address = app.server.address();
  const host = typeof address === 'object' && address ? `127.0.0.1:${address.port}` : '';
  const call: Server['call'] = (method, path, init = {}) =>
    fetch(path.startsWith('http') ? path : `http://${host}${path}`, {
      method,
      headers: { ...(init.as === '' ? {} : { authorization: init.as ?? ALICE }), ...init.headers },
      body: init.body,
      redirect: 'manual',
    });
  const push: Server['push'] = async (name, content, as) => {
    const answer = await call('POST', `/v2/${name}/blobs/uploads/?digest=${digestOf(content)}`, {
      as,
      body: new Uint8Array(content),
      headers: { 'content-type': 'application/octet-stream' },
    });
    expect(answer.status).toBe(201);
    return digestOf(content);
  };
  return { dir, host, images, call, push };
}

async function errorCode(answer: Response): Promise<string> {
  const body: unknown = await answer.json();
  expect(body).toEqual({ errors: [{ code: expect.any(String), message: expect.any(String) }] });
  return JSON.parse(JSON.stringify(body)).errors[0].code;
}

describe('who may', () => {
  it('nobody without credentials that the platform knows', async () => {
    const { call } = await serve();
    for (const as of [
      '',
      'Basic !!!',
      'Bearer x',
      `Basic ${Buffer.from('alice:no').toString('base64')}`,
      `Basic ${Buffer.from('alice').toString('base64')}`,
    ]) {
      const answer = await call('GET', '/v2/', { as });
      expect(answer.status).toBe(401);
      expect(answer.headers.get('www-authenticate')).toMatch(/^Basic realm=/);
      expect(await errorCode(answer)).toBe('UNAUTHORIZED');
    }
    const answer = await call('GET', '/v2/');
    expect([answer.status, answer.headers.get('docker-distribution-api-version')]).toEqual([200, 'registry/2.0']);
  });

  it('a user what policies allow, by repository and by what is done to it', async () => {
    const denied = new Set<string>();
    const { call, push } = await serve({ denied });
    const image = await makeImage([[{ name: 'a', content: 'a' }]]);
    const layer = await push('app', Buffer.from('a blob'));
    for (const blob of image.blobs.values()) await push('app', blob);
    const put = () =>
      call('PUT', '/v2/app/manifests/v1', {
        body: new Uint8Array(image.manifest),
        headers: { 'content-type': MEDIA.ociManifest },
      });
    expect((await put()).status).toBe(201);
    const attempts: [string, number, () => Promise<Response>][] = [
      ['PullImage app', 200, () => call('GET', '/v2/app/manifests/v1')],
      ['PullImage app', 200, () => call('HEAD', `/v2/app/blobs/${layer}`)],
      ['PullImage app', 200, () => call('GET', '/v2/app/tags/list')],
      ['PushImage app', 201, put],
      ['PushImage app', 202, () => call('POST', '/v2/app/blobs/uploads/')],
      ['PushImage app', 201, () => call('POST', `/v2/app/blobs/uploads/?mount=${layer}&from=app`)],
      ['DeleteImage app', 202, () => call('DELETE', '/v2/app/manifests/v1')],
    ];
    for (const [right, allowed, attempt] of attempts) {
      denied.add(right);
      const refused = await attempt();
      expect([right, refused.status]).toEqual([right, 403]);
      expect(await refused.text()).toMatch(/^$|"DENIED"/);
      denied.clear();
      expect([right, (await attempt()).status]).toEqual([right, allowed]);
    }
  });

  it('another account sees no name, tag, manifest, blob or upload of mine, nor by digest', async () => {
    const { call, push, images } = await serve();
    const image = await makeImage([[{ name: 'a', content: 'secret' }]]);
    for (const blob of image.blobs.values()) await push('app', blob);
    await call('PUT', '/v2/app/manifests/v1', {
      body: new Uint8Array(image.manifest),
      headers: { 'content-type': MEDIA.ociManifest },
    });
    const [layer = ''] = image.blobs.keys();
    const upload = (await call('POST', '/v2/app/blobs/uploads/')).headers.get('location') ?? '';
    for (const path of [
      '/v2/app/manifests/v1',
      `/v2/app/manifests/${image.digest}`,
      `/v2/app/blobs/${layer}`,
      `/v2/other/blobs/${layer}`,
      '/v2/app/tags/list',
      upload,
    ]) {
      expect((await call('GET', path, { as: ALICE })).ok || path.includes('other')).toBe(true);
      expect([path, (await call('GET', path, { as: BOB })).status]).toEqual([path, 404]);
    }
    // Knowing a digest is not having the content: neither mounting nor naming it in a manifest makes it Bob's.
    expect((await call('POST', `/v2/mine/blobs/uploads/?mount=${layer}&from=app`, { as: BOB })).status).toBe(202);
    const theft = await call('PUT', '/v2/mine/manifests/v1', {
      as: BOB,
      body: new Uint8Array(image.manifest),
      headers: { 'content-type': MEDIA.ociManifest },
    });
    expect([theft.status, await errorCode(theft)]).toEqual([404, 'MANIFEST_BLOB_UNKNOWN']);
    for (const name of ['platform/app:v1', `platform/app@${image.digest}`]) {
      expect((await images.resolve(name, { accountId: '111111111111' })).digest).toBe(image.digest);
      await expect(images.resolve(name, { accountId: '222222222222' })).rejects.toMatchObject({ reason: 'not-found' });
      await expect(images.resolve(name)).rejects.toMatchObject({ reason: 'invalid' });
    }
  });
});

describe('blobs', () => {
  it('arrive in one request, in two, in chunks', async () => {
    const { call, push, dir } = await serve();
    const content = randomBytes(100_000);
    const digest = await push('a/b/c', content);
    const head = await call('HEAD', `/v2/a/b/c/blobs/${digest}`);
    expect([head.status, head.headers.get('content-length'), head.headers.get('docker-content-digest')]).toEqual([
      200,
      '100000',
      digest,
    ]);
    expect(Buffer.from(await (await call('GET', `/v2/a/b/c/blobs/${digest}`)).arrayBuffer()).equals(content)).toBe(
      true,
    );

    const other = randomBytes(5000);
    const begun = await call('POST', '/v2/x/blobs/uploads/');
    expect([begun.status, begun.headers.get('range')]).toEqual([202, '0-0']);
    let location = begun.headers.get('location') ?? '';
    for (const [from, to] of [
      [0, 2000],
      [2000, 5000],
    ] as const) {
      const part = await call('PATCH', location, {
        body: new Uint8Array(other.subarray(from, to)),
        headers: { 'content-range': `${from}-${to - 1}`, 'content-type': 'application/octet-stream' },
      });
      expect([part.status, part.headers.get('range')]).toEqual([202, `0-${to - 1}`]);
      location = part.headers.get('location') ?? '';
    }
    expect((await call('GET', location)).headers.get('range')).toBe('0-4999');
    expect((await call('PUT', `${location}?digest=${digestOf(other)}`)).status).toBe(201);
    expect((await call('GET', location)).status).toBe(404);
    expect(await readdir(join(dir, 'data/images/tmp'))).toEqual([]);
  });

  it('a chunk out of order is refused with where to go on, and the upload lives', async () => {
    const { call } = await serve();
    const location = (await call('POST', '/v2/x/blobs/uploads/')).headers.get('location') ?? '';
    await call('PATCH', location, { body: 'hello', headers: { 'content-range': '0-4' } });
    const wrong = await call('PATCH', location, { body: 'world', headers: { 'content-range': '6-10' } });
    expect([wrong.status, wrong.headers.get('range'), wrong.headers.get('location')]).toEqual([416, '0-4', location]);
    expect((await call('PATCH', location, { body: 'x', headers: { 'content-range': 'bytes rubbish' } })).status).toBe(
      416,
    );
    expect(
      (await call('PUT', `${location}?digest=${digestOf(Buffer.from('helloworld'))}`, { body: 'world' })).status,
    ).toBe(201);
  });

  it('with another digest, without one, or cancelled, are not kept', async () => {
    const { call, dir } = await serve();
    const start = async (): Promise<string> =>
      (await call('POST', '/v2/x/blobs/uploads/')).headers.get('location') ?? '';
    const wrong = await call('PUT', `${await start()}?digest=${digestOf(Buffer.from('a'))}`, { body: 'b' });
    expect([wrong.status, await errorCode(wrong)]).toEqual([400, 'DIGEST_INVALID']);
    for (const query of ['', '?digest=', '?digest=md5:x'])
      expect((await call('PUT', (await start()) + query, { body: 'b' })).status).toBe(400);
    const cancelled = await start();
    expect((await call('DELETE', cancelled)).status).toBe(204);
    expect((await call('PATCH', cancelled, { body: 'b' })).status).toBe(404);
    expect((await call('GET', `/v2/x/blobs/${digestOf(Buffer.from('b'))}`)).status).toBe(404);
    expect((await readdir(join(dir, 'data/images/tmp'))).length).toBe(3);
  });

  it('are mounted from another repository of the same account', async () => {
    const { call, push } = await serve();
    const digest = await push('one', Buffer.from('content'));
    const mounted = await call('POST', `/v2/two/blobs/uploads/?mount=${digest}&from=one`);
    expect([mounted.status, mounted.headers.get('location')]).toEqual([201, `/v2/two/blobs/${digest}`]);
  });

  it('stay in the repositories that name them in data of an earlier version, which knew them by account alone', async () => {
    const { call, dir, images, push } = await serve();
    const image = await makeImage([[{ name: 'a', content: 'a' }]]);
    for (const blob of image.blobs.values()) await push('old', blob);
    const put = { body: new Uint8Array(image.manifest), headers: { 'content-type': MEDIA.ociManifest } };
    await call('PUT', '/v2/old/manifests/v1', put);
    await rm(join(dir, 'data/images/repos/111111111111/old/blobs'), { recursive: true });
    const [layer = ''] = image.blobs.keys();
    expect((await call('GET', `/v2/old/blobs/${layer}`)).status).toBe(404);
    await images.store.init();
    expect((await call('GET', `/v2/old/blobs/${layer}`)).status).toBe(200);
    expect((await call('GET', `/v2/other/blobs/${layer}`)).status).toBe(404);
  });

  it('are given in ranges', async () => {
    const { call, push } = await serve();
    const digest = await push('x', Buffer.from('0123456789'));
    const range = async (value: string) => {
      const answer = await call('GET', `/v2/x/blobs/${digest}`, { headers: { range: value } });
      return [answer.status, answer.headers.get('content-range'), answer.status === 416 ? '' : await answer.text()];
    };
    expect(await range('bytes=2-4')).toEqual([206, 'bytes 2-4/10', '234']);
    expect(await range('bytes=7-')).toEqual([206, 'bytes 7-9/10', '789']);
    expect(await range('bytes=-3')).toEqual([206, 'bytes 7-9/10', '789']);
    expect(await range('bytes=20-')).toEqual([416, 'bytes */10', '']);
    expect(await range('lines=1-2')).toEqual([200, null, '0123456789']);
    expect(parseRange('bytes=5-2', 10)).toBe(undefined);
    expect(() => parseRange('bytes=-0', 10)).toThrow(RegistryError);
  });
});

describe('limits', () => {
  it('a blob over the bound, too many uploads, an account that is full', async () => {
    const { call, push } = await serve({ limits: { uploadBytes: 1000, uploadsPerAccount: 2 }, accountBytes: 1500 });
    const large = await call('POST', `/v2/x/blobs/uploads/?digest=${digestOf(Buffer.alloc(1001))}`, {
      body: Buffer.alloc(1001),
    });
    expect([large.status, await errorCode(large)]).toEqual([413, 'SIZE_INVALID']);
    await push('x', randomBytes(900));
    const full = await call('POST', `/v2/x/blobs/uploads/?digest=${digestOf(Buffer.alloc(900))}`, {
      body: Buffer.alloc(900),
    });
    expect([full.status, await errorCode(full)]).toEqual([403, 'DENIED']);
    await call('POST', '/v2/x/blobs/uploads/');
    await call('POST', '/v2/x/blobs/uploads/');
    expect((await call('POST', '/v2/x/blobs/uploads/')).status).toBe(429);
    expect((await call('POST', '/v2/x/blobs/uploads/', { as: BOB })).status).toBe(202);
  });

  it('what is only arriving counts to the quota of its account, all uploads together', async () => {
    const { call, dir } = await serve({ accountBytes: 1500 });
    const begin = async (): Promise<string> =>
      (await call('POST', '/v2/x/blobs/uploads/')).headers.get('location') ?? '';
    const [one, two] = [await begin(), await begin()];
    expect((await call('PATCH', one, { body: Buffer.alloc(900) })).status).toBe(202);
    const over = await call('PATCH', two, { body: Buffer.alloc(900) });
    expect([over.status, await errorCode(over)]).toEqual([403, 'DENIED']);
    expect(await readdir(join(dir, 'data', 'images', 'tmp'))).toHaveLength(1);
    // Its place is free again, and what fits is kept.
    expect((await call('PATCH', await begin(), { body: Buffer.alloc(600) })).status).toBe(202);
    const kept = await call('PUT', `${one}?digest=${digestOf(Buffer.alloc(900))}`);
    expect(kept.status).toBe(201);
  });

  it('a blob on its way stops where the disk goes to its end, is removed, and can be cancelled', async () => {
    let low = false;
    const needRoom = (): void => {
      if (low) throw new LowDiskError({ free: 0 }, 1);
    };
    const { call, host, dir } = await serve({ needRoom });
    const begin = async (): Promise<string> =>
      (await call('POST', '/v2/x/blobs/uploads/')).headers.get('location') ?? '';
    const [location, other] = [await begin(), await begin()];
    const request = httpRequest(`http://${host}${location}`, {
      method: 'PATCH',
      headers: { authorization: ALICE, 'content-length': '10' },
    });
    const answered = new Promise<number | undefined>((resolve, reject) => {
      request.on('error', reject);
      request.on('response', (response) => resolve(response.statusCode));
    });
    request.write('hello');
    await expect.poll(async () => (await call('GET', location)).headers.get('range')).toBe('0-4');
    low = true;
    request.end('hello');
    expect(await answered).toBe(503);
    const begun = await call('POST', '/v2/x/blobs/uploads/');
    expect([begun.status, await errorCode(begun)]).toEqual([503, 'UNAVAILABLE']);
    expect((await call('GET', location)).status).toBe(404);
    expect((await call('DELETE', other)).status).toBe(204);
    expect(await readdir(join(dir, 'data', 'images', 'tmp'))).toEqual([]);
  });

  it('an upload that nobody goes on with is removed, and so are all when the server stops', async () => {
    const clock = new FakeClock();
    const { call, dir } = await serve({ clock, limits: { uploadIdleMs: 60_000 } });
    const location = (await call('POST', '/v2/x/blobs/uploads/')).headers.get('location') ?? '';
    await clock.advance(50_000);
    expect((await call('PATCH', location, { body: 'abc' })).status).toBe(202);
    await clock.advance(50_000);
    expect((await call('GET', location)).status).toBe(204);
    expect((await readdir(join(dir, 'data/images/tmp'))).length).toBe(1);
    await clock.advance(20_000);
    expect((await call('GET', location)).status).toBe(404);
    await sleep(50);
    expect(await readdir(join(dir, 'data/images/tmp'))).toEqual([]);
  });

  it('a body that stops in the middle is given up, and the upload can go on', async () => {
    const { call, host } = await serve({ limits: { stallMs: 200 } });
    const location = (await call('POST', '/v2/x/blobs/uploads/')).headers.get('location') ?? '';
    const ended = new Promise<string>((resolve) => {
      const request = httpRequest(`http://${host}${location}`, {
        method: 'PATCH',
        headers: { authorization: ALICE, 'content-length': '10' },
      });
      request.on('error', () => resolve('cut'));
      request.on('response', (response) => resolve(String(response.statusCode)));
      request.write('hello');
    });
    expect(await ended).toMatch(/cut|500/);
    expect((await call('GET', location)).headers.get('range')).toBe('0-4');
    // The client may see its connection cut before the server has closed the file; until then the upload is taken.
    const finish = () => call('PUT', `${location}?digest=${digestOf(Buffer.from('hello!'))}`, { body: '!' });
    let { status } = await finish();
    for (let tries = 0; status === 409 && tries < 100; tries++) {
      await sleep(20);
      ({ status } = await finish());
    }
    expect(status).toBe(201);
  });

  it('a manifest over the bound', async () => {
    const { call } = await serve();
    const answer = await call('PUT', '/v2/x/manifests/v1', {
      body: Buffer.alloc(5 * 1024 ** 2, 32),
      headers: { 'content-type': MEDIA.ociManifest },
    }).catch(() => undefined);
    expect(answer?.status ?? 413).toBe(413);
  });
});

describe('manifests', () => {
  it('by tag and digest, HEAD like GET, listed, paged, moved, deleted; GC leaves what is tagged', async () => {
    const { call, push, images } = await serve();
    const image = await makeImage([[{ name: 'a', content: 'x' }]]);
    for (const blob of image.blobs.values()) await push('app', blob);
    for (const tag of ['v1', 'v2', 'v3']) {
      const put = await call('PUT', `/v2/app/manifests/${tag}`, {
        body: new Uint8Array(image.manifest),
        headers: { 'content-type': MEDIA.ociManifest },
      });
      expect([put.status, put.headers.get('docker-content-digest')]).toEqual([201, image.digest]);
    }
    const head = await call('HEAD', '/v2/app/manifests/v1');
    expect([head.status, head.headers.get('content-type'), head.headers.get('content-length')]).toEqual([
      200,
      MEDIA.ociManifest,
      String(image.manifest.length),
    ]);
    expect(
      Buffer.from(
        await (await call('GET', `/v2/app/manifests/${encodeURIComponent(image.digest)}`)).arrayBuffer(),
      ).equals(image.manifest),
    ).toBe(true);
    expect(await (await call('GET', '/v2/app/tags/list')).json()).toEqual({ name: 'app', tags: ['v1', 'v2', 'v3'] });
    const page = await call('GET', '/v2/app/tags/list?n=2');
    expect([await page.json(), page.headers.get('link')]).toEqual([
      { name: 'app', tags: ['v1', 'v2'] },
      '</v2/app/tags/list?n=2&last=v2>; rel="next"',
    ]);
    expect(await (await call('GET', '/v2/app/tags/list?n=2&last=v2')).json()).toEqual({ name: 'app', tags: ['v3'] });

    await images.collect(new Set());
    expect((await images.resolve('platform/app:v1', { accountId: '111111111111' })).digest).toBe(image.digest);
    expect((await call('DELETE', '/v2/app/manifests/v1')).status).toBe(202);
    expect((await call('GET', '/v2/app/manifests/v1')).status).toBe(404);
    expect((await call('DELETE', `/v2/app/manifests/${image.digest}`)).status).toBe(202);
    expect((await call('GET', '/v2/app/manifests/v2')).status).toBe(404);
    await images.collect(new Set());
    expect((await call('HEAD', `/v2/app/blobs/${[...image.blobs.keys()][0]}`)).status).toBe(404);
  });

  it.each([
    ['no JSON', '{', 'MANIFEST_INVALID'],
    ['another digest', '', 'DIGEST_INVALID'],
    ['a part that was not pushed', 'parts', 'MANIFEST_BLOB_UNKNOWN'],
  ])('refuses %s', async (_name, body, code) => {
    const { call } = await serve();
    const image = await makeImage([[{ name: 'a', content: 'x' }]]);
    const manifest = body === '{' ? Buffer.from(body) : image.manifest;
    const reference = body === '' ? digestOf(Buffer.from('x')) : 'v1';
    const answer = await call('PUT', `/v2/app/manifests/${reference}`, {
      body: new Uint8Array(manifest),
      headers: { 'content-type': MEDIA.ociManifest },
    });
    expect(await errorCode(answer)).toBe(code);
    expect((await call('GET', '/v2/app/tags/list')).status).toBe(404);
  });

  it.each([
    ['GET', '/v2/UPPER/manifests/v1', 400, 'NAME_INVALID'],
    ['GET', '/v2/../manifests/v1', 404, undefined],
    ['GET', '/v2/a/manifests/..', 404, undefined],
    ['GET', '/v2/a%2F..%2Fb/manifests/v1', 400, 'NAME_INVALID'],
    ['GET', '/v2/a/manifests/sha256:zz', 400, 'DIGEST_INVALID'],
    ['GET', '/v2/a/blobs/sha512:zz', 400, 'DIGEST_INVALID'],
    ['GET', '/v2/a/blobs/uploads/..%2f..%2f', 404, 'BLOB_UPLOAD_UNKNOWN'],
    ['GET', '/v2/_catalog', 404, 'UNSUPPORTED'],
    ['PUT', '/v2/a/tags/list', 405, 'UNSUPPORTED'],
    ['DELETE', `/v2/a/blobs/sha256:${'a'.repeat(64)}`, 405, 'UNSUPPORTED'],
    ['PUT', '/v2/base/node/manifests/22', 403, 'DENIED'],
  ])('%s %s', async (method, path, status, code) => {
    const { call } = await serve();
    const answer = await call(method, path);
    expect(answer.status).toBe(status);
    if (code) expect(await errorCode(answer)).toBe(code);
  });

  it('any path is parsed or refused', () => {
    const part = fc.constantFrom(
      'v2',
      'a',
      'manifests',
      'blobs',
      'uploads',
      'tags',
      'list',
      '..',
      '',
      '%2e%2e',
      `sha256:${'a'.repeat(64)}`,
      '%',
      'A',
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        try {
          const route = parseRegistryPath(`/v2/${parts.join('/')}`);
          if ('name' in route) expect(route.name).toMatch(/^[a-z0-9]/);
        } catch (error) {
          if (!(error instanceof RegistryError)) throw error;
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe('with our own client', () => {
  it('pushes from nothing, pulls through the registry', async () => {
    const { host, call, push } = await serve();
    const image = await makeImage([[{ name: 'a', content: 'x' }]]);
    for (const blob of image.blobs.values()) await push('team/app', blob);
    await call('PUT', '/v2/team/app/manifests/v1', {
      body: new Uint8Array(image.manifest),
      headers: { 'content-type': MEDIA.ociManifest },
    });
    const other = await testImages(await tempDir());
    const credentials = { username: 'alice', password: 'pw' };
    expect((await other.resolve(`${host}/team/app:v1`, { credentials })).digest).toBe(image.digest);
    await expect(other.resolve(`${host}/team/app:v1`)).rejects.toMatchObject({ reason: 'unauthorized' });
  });
});

describe.skipIf(!haveSkopeo())('with skopeo', () => {
  it('copies in and out, one architecture and several, and what comes out is what went in', async () => {
    const { host, dir, images, call } = await serve();
    const image = await makeImage([[{ name: 'a', content: randomBytes(2_000_000) }], [{ name: 'b', content: 'y' }]]);
    const other = await makeImage([[{ name: 'a', content: 'z' }]], otherArchitecture());
    await writeLayout(join(dir, 'one'), makeIndex([{ image, architecture: here, tag: 'v1' }]), [image]);
    const both = makeIndex([
      { image: other, architecture: otherArchitecture() },
      { image, architecture: here },
    ]);
    const outer = {
      schemaVersion: 2,
      manifests: [
        {
          mediaType: MEDIA.ociIndex,
          digest: digestOf(both),
          size: both.length,
          annotations: { 'org.opencontainers.image.ref.name': 'v1' },
        },
      ],
    };
    await mkdir(join(dir, 'two'));
    await writeLayout(join(dir, 'two'), Buffer.from(JSON.stringify(outer)), [image, other]);
    await writeFile(join(dir, 'two/blobs/sha256', digestOf(both).slice(7)), both);

    await skopeo(
      'copy',
      '--dest-tls-verify=false',
      '--dest-creds=alice:pw',
      `oci:${dir}/one:v1`,
      `docker://${host}/team/app:v1`,
    );
    expect((await images.resolve('platform/team/app:v1', { accountId: '111111111111' })).digest).toBe(image.digest);
    await skopeo(
      'copy',
      '--all',
      '--dest-tls-verify=false',
      '--dest-creds=alice:pw',
      `oci:${dir}/two:v1`,
      `docker://${host}/team/multi:v1`,
    );
    expect((await images.resolve('platform/team/multi:v1', { accountId: '111111111111' })).digest).toBe(image.digest);

    await skopeo(
      'copy',
      '--src-tls-verify=false',
      '--src-creds=alice:pw',
      `docker://${host}/team/app:v1`,
      `oci:${dir}/back:v1`,
    );
    const back = await testImages(join(dir, 'data2'));
    expect((await back.resolve(`oci:${dir}/back:v1`)).digest).toBe(image.digest);
    const inspected = JSON.parse(
      await skopeo('inspect', '--tls-verify=false', '--creds=alice:pw', `docker://${host}/team/app@${image.digest}`),
    );
    expect(inspected).toMatchObject({ Digest: image.digest, Architecture: here, RepoTags: ['v1'] });
    await expect(
      skopeo('inspect', '--tls-verify=false', '--creds=alice:wrong', `docker://${host}/team/app:v1`),
    ).rejects.toThrow(/unauthorized/i);

    for (const kind of ['oci-archive', 'docker-archive']) {
      await skopeo(
        'copy',
        '--src-tls-verify=false',
        '--src-creds=alice:pw',
        `docker://${host}/team/app:v1`,
        `${kind}:${dir}/${kind}.tar:app:v1`,
      );
      const { digest } = await back.resolve(`${kind}:${dir}/${kind}.tar`);
      expect((await readdir((await back.prepare(digest)).rootfs)).sort()).toEqual(['a', 'b']);
    }
    await skopeo('delete', '--tls-verify=false', '--creds=alice:pw', `docker://${host}/team/app:v1`);
    expect((await call('GET', '/v2/team/app/manifests/v1')).status).toBe(404);
  });
});
