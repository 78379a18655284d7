import { type AddressInfo, createServer } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { createOutbound } from '../../outbound/index.ts';
import { machinePlatform } from '../architecture.ts';
import { digestOf } from '../digest.ts';
import { type FakeRegistry, fakeRegistry } from '../testing/fake-registry.ts';
import { makeImage, makeIndex, otherArchitecture } from '../testing/image.ts';
import { testImages } from '../testing/images.ts';
import { tempDir } from '../testing/temp-dir.ts';
import { parseChallenges } from './registry-challenge.ts';

const here = machinePlatform().architecture;
const layers = [[{ name: 'a', content: 'one'.repeat(1000) }], [{ name: 'b', content: 'two' }]];

async function setUp() {
  const registry = await fakeRegistry();
  const image = await makeImage(layers);
  registry.add('app', 'v1', image);
  const images = await testImages(await tempDir());
  return { registry, image, images };
}

describe('pulling', () => {
  it('by tag and by digest, over http on the loopback, each blob once', async () => {
    const { registry, image, images } = await setUp();
    expect((await images.resolve(`${registry.host}/app:v1`)).digest).toBe(image.digest);
    expect((await images.resolve(`${registry.host}/app@${image.digest}`)).digest).toBe(image.digest);
    const blobs = registry.requests.filter((r) => r.url.includes('/blobs/')).map((r) => r.url);
    expect(blobs.length).toBe(3);
    expect(new Set(blobs).size).toBe(3);
  });

  it('of a multi-architecture index takes this machine’s, whatever else is in it', async () => {
    const { registry, image, images } = await setUp();
    const other = await makeImage(layers, otherArchitecture());
    const attestation = await makeImage([], 'unknown');
    const index = makeIndex([
      { image: attestation, architecture: 'unknown' },
      { image: other, architecture: otherArchitecture() },
      { image, architecture: here },
    ]);
    registry.manifests.set('app/multi', index);
    registry.manifests.set('app/others', makeIndex([{ image: other, architecture: otherArchitecture() }]));
    registry.manifests.set(`app/${digestOf(index)}`, index);
    expect((await images.resolve(`${registry.host}/app:multi`)).digest).toBe(image.digest);
    expect((await images.resolve(`${registry.host}/app@${digestOf(index)}`)).digest).toBe(image.digest);
    await expect(images.resolve(`${registry.host}/app:others`)).rejects.toMatchObject({
      reason: 'architecture',
      message: expect.stringContaining(`linux/${here}`),
    });
  });

  it('an image of another architecture is refused before its layers are fetched', async () => {
    const { registry, images } = await setUp();
    registry.add('app', 'other', await makeImage(layers, otherArchitecture()));
    await expect(images.resolve(`${registry.host}/app:other`)).rejects.toMatchObject({
      reason: 'architecture',
      message: expect.stringMatching(new RegExp(`linux/${otherArchitecture()}.*linux/${here}`)),
    });
    expect(registry.requests.filter((r) => r.url.includes('/blobs/')).length).toBe(1);
  });

  it('what is not there, and what is not an image', async () => {
    const { registry, images } = await setUp();
    registry.manifests.set('app/text', Buffer.from('hello'));
    await expect(images.resolve(`${registry.host}/app:nope`)).rejects.toMatchObject({
      reason: 'not-found',
      message: expect.stringContaining('nope'),
    });
    await expect(images.resolve(`${registry.host}/app:text`)).rejects.toMatchObject({ reason: 'invalid' });
    await expect(images.resolve('127.0.0.1:1/app')).rejects.toMatchObject({ reason: 'unreachable' });
  });

  it('an address that is not opened is not called, though it is when opened', async () => {
    const { registry } = await setUp();
    const { createOutbound } = await import('../../outbound/index.ts');
    const { systemClock } = await import('../../clock.ts');
    const closed = await testImages(await tempDir(), { outbound: createOutbound({ clock: systemClock }) });
    await expect(closed.resolve(`${registry.host}/app:v1`)).rejects.toMatchObject({
      reason: 'unreachable',
      message: expect.stringContaining('--allow-private-egress'),
    });
    expect(registry.requests).toEqual([]);
    const open = await testImages(await tempDir());
    await open.resolve(`${registry.host}/app:v1`);
    expect(registry.requests.length).toBeGreaterThan(0);
  });
});

describe('a registry that misbehaves', () => {
  const failing = (times: number, answer: (n: number) => number) => {
    let count = 0;
    return (registry: FakeRegistry): void => {
      registry.intercept = (request, response) => {
        if (!request.url?.includes('/app/') || count >= times) return false;
        response.writeHead(answer(count++), { 'retry-after': '0' }).end();
        return true;
      };
    };
  };

  it('is asked again after 500, 503 and 429', async () => {
    const { registry, image, images } = await setUp();
    failing(3, (n) => [500, 503, 429][n] ?? 500)(registry);
    expect((await images.resolve(`${registry.host}/app:v1`)).digest).toBe(image.digest);
  });

  it('but not for ever', async () => {
    const { registry, images } = await setUp();
    failing(Number.POSITIVE_INFINITY, () => 503)(registry);
    await expect(images.resolve(`${registry.host}/app:v1`)).rejects.toMatchObject({
      reason: 'unreachable',
      message: expect.stringContaining('503'),
    });
    expect(registry.requests.filter((r) => r.url.includes('/app/')).length).toBe(4);
  });

  it('does not say what a name resolves to, nor whether it does', async () => {
    const asked: string[] = [];
    const outbound = createOutbound({
      clock: systemClock,
      resolve: async (name) => {
        asked.push(name);
        if (name.startsWith('not-there')) throw Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' });
        return [{ address: '10.11.12.13', family: 4 }];
      },
    });
    const images = await testImages(await tempDir(), { outbound });
    const said = async (host: string): Promise<string> => {
      const error: unknown = await images.resolve(`${host}/app:v1`).catch((thrown: unknown) => thrown);
      return String(error).replaceAll(host, 'HOST');
    };
    const there = await said('vault.corp.example');
    expect(asked).toContain('vault.corp.example');
    expect(there).not.toContain('10.11');
    expect(await said('not-there.corp.example')).toBe(there);
    expect(await said('vault.corp.example:8443')).toBe(there);
  });

  it('does not say whether something listens where the operator opened a private range', async () => {
    const { registry, images } = await setUp();
    const silent = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    const said = async (host: string): Promise<string> =>
      String(await images.resolve(`${host}/app:v1`).catch((thrown: unknown) => thrown)).replaceAll(host, 'HOST');
    const open = await said(`127.0.0.1:${port}`);
    await new Promise((resolve) => silent.close(resolve));
    expect(open).toContain('cannot be reached');
    expect(await said(`127.0.0.1:${port}`)).toBe(open);
    // The channel: a registry that answers is reached there.
    await images.resolve(`${registry.host}/app:v1`);
  });

  it('a registry that names another account’s blob without having it does not lend it', async () => {
    const { registry, image, images } = await setUp();
    const mine = { accountId: '111111111111' };
    const [layer = ''] = image.blobs.keys();
    await images.resolve(`${registry.host}/app:v1`, mine);
    const fetched = (): number => registry.requests.filter((request) => request.url.endsWith(layer)).length;
    // The channel: what is in the store is not fetched again, so whoever named it there would have it.
    await images.resolve(`${registry.host}/app:v1`, mine);
    expect(fetched()).toBe(1);
    const evil = await fakeRegistry();
    evil.add('app', 'v1', image);
    evil.blobs.delete(layer);
    await expect(images.resolve(`${evil.host}/app:v1`, { accountId: '222222222222' })).rejects.toMatchObject({
      reason: 'not-found',
    });
    // Who has it, gives it; then it is the other account's as well.
    expect((await images.resolve(`${registry.host}/app:v1`, { accountId: '222222222222' })).digest).toBe(image.digest);
    expect((await images.resolve(`${evil.host}/app:v1`, { accountId: '222222222222' })).digest).toBe(image.digest);
    expect(fetched()).toBe(2);
  });

  it('nor one that was pushed to a repository of the same account', async () => {
    const { registry, image, images } = await setUp();
    const account = '111111111111';
    const [layer = ''] = image.blobs.keys();
    for (const bytes of image.blobs.values()) await images.store.blobs.putBytes(bytes);
    await images.store.repositories.linkBlob(account, 'private', layer);
    registry.blobs.delete(layer);
    await expect(images.resolve(`${registry.host}/app:v1`, { accountId: account })).rejects.toMatchObject({
      reason: 'not-found',
    });
  });

  it('a blob that breaks off, or comes altered, is fetched again', async () => {
    const { registry, image, images } = await setUp();
    const [first = '', second = ''] = [...image.blobs.keys()];
    const broken = new Set([first, second]);
    registry.intercept = (request, response) => {
      const digest = request.url?.split('/').at(-1) ?? '';
      if (!broken.delete(digest)) return false;
      const bytes = Buffer.from(image.blobs.get(digest) ?? '');
      response.writeHead(200, { 'content-length': bytes.length });
      if (digest === first) response.write(bytes.subarray(0, 10), () => response.destroy());
      else response.end(bytes.fill(9, 12, 14));
      return true;
    };
    expect((await images.resolve(`${registry.host}/app:v1`)).digest).toBe(image.digest);
  });

  it('a blob or manifest that is always another is corrupt, and nothing of it is kept', async () => {
    const { registry, image, images } = await setUp();
    const [layer = ''] = image.blobs.keys();
    registry.blobs.set(layer, Buffer.alloc(image.blobs.get(layer)?.length ?? 0));
    await expect(images.resolve(`${registry.host}/app:v1`)).rejects.toMatchObject({
      reason: 'corrupt',
      message: expect.stringContaining(layer),
    });
    expect(await images.store.blobs.has(layer)).toBe(false);
    expect(await images.store.blobs.has(image.digest)).toBe(false);
    registry.manifests.set(`app/${image.digest}`, Buffer.from(`${image.manifest} `));
    await expect(images.resolve(`${registry.host}/app@${image.digest}`)).rejects.toMatchObject({ reason: 'corrupt' });
  });

  it('an endless manifest, and a layer that claims too much, are bounded', async () => {
    const { registry, image, images } = await setUp();
    registry.manifests.set('app/huge', Buffer.alloc(5 * 1024 ** 2, 32));
    await expect(images.resolve(`${registry.host}/app:huge`)).rejects.toMatchObject({
      reason: expect.stringMatching(/too-large|unreachable/),
    });
    registry.manifests.set(
      'app/claims',
      Buffer.from(image.manifest.toString().replace(/"size":\d+\}\]/, '"size":99999999999}]')),
    );
    await expect(images.resolve(`${registry.host}/app:claims`)).rejects.toMatchObject({
      reason: 'too-large',
      message: expect.stringContaining('2 GiB'),
    });
  });
});

describe('authentication', () => {
  const withToken = (registry: FakeRegistry, realm: string): void => {
    registry.intercept = (request, response) => {
      const url = new URL(request.url ?? '', 'http://x');
      if (url.pathname === '/token') {
        const anonymous = url.searchParams.get('scope') === 'repository:public:pull';
        const basic = request.headers.authorization === `Basic ${Buffer.from('me:pass:word').toString('base64')}`;
        if (url.searchParams.get('service') !== 'svc' || !(anonymous || basic)) response.writeHead(401).end();
        else response.end(JSON.stringify({ access_token: 'secret-token' }));
        return true;
      }
      if (url.pathname === '/v2/' || request.headers.authorization === 'Bearer secret-token') return false;
      const name = url.pathname.split('/')[2];
      response
        .writeHead(401, { 'www-authenticate': `Bearer realm="${realm}",service="svc",scope="repository:${name}:pull"` })
        .end();
      return true;
    };
  };

  it('by token: anonymously where that is enough, with credentials where it is not', async () => {
    const { registry, image, images } = await setUp();
    registry.add('public', 'v1', image);
    withToken(registry, `http://${registry.host}/token`);
    expect((await images.resolve(`${registry.host}/public:v1`)).digest).toBe(image.digest);
    await expect(images.resolve(`${registry.host}/app:v1`)).rejects.toMatchObject({
      reason: 'unauthorized',
      message: expect.stringContaining('give credentials'),
    });
    const credentials = { username: 'me', password: 'pass:word' };
    expect((await images.resolve(`${registry.host}/app:v1`, { credentials })).digest).toBe(image.digest);
    const wrong = { username: 'me', password: 'wrong' };
    await expect(images.resolve(`${registry.host}/app:v1`, { credentials: wrong })).rejects.toMatchObject({
      reason: 'unauthorized',
      message: expect.not.stringContaining('wrong"'),
    });
  });

  it('by password', async () => {
    const { registry, image, images } = await setUp();
    registry.intercept = (request, response) => {
      if (request.url === '/v2/' || request.headers.authorization === `Basic ${Buffer.from('u:p').toString('base64')}`)
        return false;
      response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
      return true;
    };
    expect(
      (await images.resolve(`${registry.host}/app:v1`, { credentials: { username: 'u', password: 'p' } })).digest,
    ).toBe(image.digest);
    await expect(images.resolve(`${registry.host}/app:v1`)).rejects.toMatchObject({ reason: 'unauthorized' });
  });

  it('credentials do not follow a redirect to another host, and the blob still comes', async () => {
    const { registry, image, images } = await setUp();
    const storage = await fakeRegistry();
    for (const [digest, bytes] of image.blobs) storage.blobs.set(digest, bytes);
    registry.intercept = (request, response) => {
      if (request.url === '/v2/') return false;
      if (request.headers.authorization === undefined) {
        response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
        return true;
      }
      if (!request.url?.includes('/blobs/')) return false;
      response.writeHead(307, { location: `http://${storage.host}${request.url}` }).end();
      return true;
    };
    expect(
      (await images.resolve(`${registry.host}/app:v1`, { credentials: { username: 'u', password: 'p' } })).digest,
    ).toBe(image.digest);
    expect(storage.requests.length).toBe(3);
    expect(storage.requests.every((r) => r.authorization === undefined)).toBe(true);
    expect(registry.requests.some((r) => r.authorization !== undefined)).toBe(true);
  });
});

describe('parseChallenges', () => {
  it('reads schemes and parameters, quoted or not', () => {
    expect(
      parseChallenges('Bearer realm="https://a/t?x=1,2",service=svc, scope="a:b:pull,push", Basic realm="q\\"x"'),
    ).toEqual([
      { scheme: 'bearer', parameters: { realm: 'https://a/t?x=1,2', service: 'svc', scope: 'a:b:pull,push' } },
      { scheme: 'basic', parameters: { realm: 'q"x' } },
    ]);
    expect(parseChallenges('Negotiate')).toEqual([{ scheme: 'negotiate', parameters: {} }]);
  });

  it('never throws nor hangs', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ maxLength: 200 }),
          fc
            .array(fc.constantFrom('Bearer', ' ', '=', '"', '\\', ',', 'realm', 'x'), { maxLength: 40 })
            .map((p) => p.join('')),
        ),
        (text) => {
          expect(Array.isArray(parseChallenges(text))).toBe(true);
        },
      ),
      { numRuns: 2000 },
    );
    expect(parseChallenges('"'.repeat(100_000)).length).toBe(0);
  });
});
