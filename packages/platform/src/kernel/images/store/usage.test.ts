import { randomBytes } from 'node:crypto';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../fake-clock.ts';
import { fakeRegistry } from '../testing/fake-registry.ts';
import { type MadeImage, makeImage } from '../testing/image.ts';
import { testImages } from '../testing/images.ts';
import { tempDir } from '../testing/temp-dir.ts';
import { rawZip } from '../testing/zip.ts';

const ACCOUNT = '111111111111';
const OTHER = '222222222222';
const KIB = 1024;
const FULL = { reason: 'quota', message: expect.stringContaining('quotas.imageBytesPerAccount') };
/** What unpacked files count beside their bytes. */
const BLOCK = 4 * KIB;

describe('what an account keeps in its repositories', () => {
  it('is bounded in bytes, manifests among them, and what is deleted gives room', async () => {
    const clock = new FakeClock();
    const { store, usage } = await testImages(await tempDir(), { clock, quotas: { accountBytes: 1000 } });
    const keep = async (text: string): Promise<string> => {
      const { digest, size } = await store.blobs.putBytes(Buffer.from(text));
      await usage.take(ACCOUNT, { bytes: size, parts: 1 });
      await store.repositories.linkManifest(ACCOUNT, 'app', digest, 'x/y');
      return digest;
    };
    const first = await keep('a'.repeat(600));
    await keep('b'.repeat(400));
    await expect(keep('c')).rejects.toMatchObject({ ...FULL, message: expect.stringContaining('1000 bytes') });
    await usage.take(OTHER, { bytes: 1000, parts: 1 });
    await store.blobs.remove(first);
    await store.repositories.forget(new Set([first]));
    await clock.advance(5_000);
    await keep('c');
  });

  it('is bounded in number, in all repositories together', async () => {
    const { store, usage } = await testImages(await tempDir(), { quotas: { accountParts: 10 } });
    const { repositories } = store;
    const digest = `sha256:${'0'.repeat(64)}`;
    for (const name of ['one', 'two', 'three/four']) {
      await repositories.linkBlob(ACCOUNT, name, digest);
      await repositories.linkManifest(ACCOUNT, name, digest, 'x/y');
      await repositories.setTag(ACCOUNT, name, 'latest', digest);
    }
    await usage.take(ACCOUNT, { bytes: 0, parts: 1 });
    await expect(usage.take(ACCOUNT, { bytes: 0, parts: 1 })).rejects.toMatchObject({ reason: 'quota' });
  });
});

describe('what is fetched for an account', () => {
  const large = (kib: number): Promise<MadeImage> => makeImage([[{ name: 'a', content: randomBytes(kib * KIB) }]]);
  const fetched = async (kib: number) => {
    const registry = await fakeRegistry();
    const dir = await tempDir();
    const images = await testImages(dir, { collectGraceMs: 0, quotas: { accountBytes: kib * KIB } });
    const blobs = (): number => registry.requests.filter(({ url }) => url.includes('/blobs/')).length;
    const pull = (name: string, accountId?: string) =>
      images.resolve(`${registry.host}/${name}:v1`, accountId === undefined ? {} : { accountId });
    return { registry, dir, images, blobs, pull };
  };

  it('is refused before any of it comes when it would be too much, to that account alone', async () => {
    const { registry, blobs, pull } = await fetched(100);
    registry.add('one', 'v1', await large(60));
    registry.add('two', 'v1', await large(60));
    await pull('one', ACCOUNT);
    const before = blobs();
    await expect(pull('two', ACCOUNT)).rejects.toMatchObject(FULL);
    expect(blobs()).toBe(before);
    // The controls: another account may, the platform itself may, and what is there already takes nothing more.
    await pull('two', OTHER);
    await pull('two');
    await pull('one', ACCOUNT);
  });

  it('is refused while something else is still coming that leaves no room', async () => {
    const { registry, pull } = await fetched(100);
    registry.add('one', 'v1', await large(60));
    registry.add('two', 'v1', await large(60));
    const both = await Promise.allSettled([pull('one', ACCOUNT), pull('two', ACCOUNT)]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  });

  it('counts what came of an image that did not come whole', async () => {
    const { registry, pull } = await fetched(100);
    const cut = await makeImage([60, 30].map((kib) => [{ name: `${kib}`, content: randomBytes(kib * KIB) }]));
    registry.add('cut', 'v1', cut);
    registry.add('next', 'v1', await large(60));
    const last = [...cut.blobs].find(([, bytes]) => bytes.length > 20 * KIB && bytes.length < 40 * KIB)?.[0] ?? '';
    registry.intercept = ({ url = '' }, response) => {
      if (!url.endsWith(last)) return undefined;
      response.writeHead(404).end();
      return true;
    };
    await expect(pull('cut', ACCOUNT)).rejects.toMatchObject({ reason: 'not-found' });
    await expect(pull('next', ACCOUNT)).rejects.toMatchObject(FULL);
    await pull('next', OTHER);
  });

  it('is given back once it is collected', async () => {
    const { registry, images, pull } = await fetched(100);
    registry.add('one', 'v1', await large(60));
    registry.add('two', 'v1', await large(60));
    const { digest } = await pull('one', ACCOUNT);
    await images.collect(new Set([digest]));
    await expect(pull('two', ACCOUNT)).rejects.toMatchObject(FULL);
    await images.collect(new Set());
    images.usage.forget(ACCOUNT);
    await pull('two', ACCOUNT);
  });

  it('counts unpacked, and leaves nothing where that is too much', async () => {
    // A layer of zeros is small, and what is in it is not.
    const zeros = await makeImage([[{ name: 'a', content: Buffer.alloc(200 * KIB) }]]);
    const { registry, dir, images, pull } = await fetched(150);
    registry.add('zeros', 'v1', zeros);
    const { digest } = await pull('zeros', ACCOUNT);
    await expect(images.prepare(digest, undefined, ACCOUNT)).rejects.toMatchObject(FULL);
    expect(await readdir(join(dir, 'images', 'rootfs'))).toEqual([]);
    expect(await readdir(join(dir, 'images', 'tmp'))).toEqual([]);
    // The control: an image that was accepted before is unpacked again without being asked.
    await images.prepare(digest);
  });

  it('counts each unpacked file as a block of the disk', async () => {
    const files = Array.from({ length: 100 }, (_, n) => ({ name: `f${n}`, content: 'x' }));
    const { registry, images, pull } = await fetched(300);
    registry.add('many', 'v1', await makeImage([files]));
    const { digest } = await pull('many', ACCOUNT);
    await expect(images.prepare(digest, undefined, ACCOUNT)).rejects.toMatchObject(FULL);
    const wide = await fetched(600);
    wide.registry.add('many', 'v1', await makeImage([files]));
    await wide.images.prepare((await wide.pull('many', ACCOUNT)).digest, undefined, ACCOUNT);
    expect(600 * KIB - (await wide.images.usage.room(ACCOUNT))).toBeGreaterThan(100 * BLOCK);
  });

  it('counts what two versions share once, and all to the one that is left', async () => {
    const { registry, images, pull } = await fetched(1000);
    const common = [{ name: 'a', content: Buffer.alloc(200 * KIB) }];
    registry.add('one', 'v1', await makeImage([common]));
    registry.add('two', 'v1', await makeImage([common, [{ name: 'b', content: Buffer.alloc(100 * KIB) }]]));
    const used = async (): Promise<number> => 1000 * KIB - (await images.usage.room(ACCOUNT));
    const one = await pull('one', ACCOUNT);
    await images.prepare(one.digest, undefined, ACCOUNT);
    const ofOne = await used();
    const two = await pull('two', ACCOUNT);
    await images.prepare(two.digest, undefined, ACCOUNT);
    const ofBoth = await used();
    expect(ofBoth - ofOne).toBeGreaterThan(100 * KIB);
    expect(ofBoth - ofOne).toBeLessThan(150 * KIB);
    await images.collect(new Set([two.digest]));
    // The content is still there, as the second one's.
    expect(await used()).toBeGreaterThan(300 * KIB);
    expect(await used()).toBeLessThan(ofBoth);
  });

  it('is unpacked for a neighbour whose own quota has room, though another began it, and counts to both', async () => {
    const { registry, images, pull } = await fetched(350);
    registry.add('zeros', 'v1', await makeImage([[{ name: 'a', content: Buffer.alloc(200 * KIB) }]]));
    registry.add('other', 'v1', await large(200));
    await pull('other', ACCOUNT);
    const { digest } = await pull('zeros', ACCOUNT);
    await pull('zeros', OTHER);
    const room = vi.spyOn(images.usage, 'room');
    const first = images.prepare(digest, undefined, ACCOUNT);
    first.catch(() => undefined);
    await vi.waitFor(() => expect(room).toHaveBeenCalled());
    await images.prepare(digest, undefined, OTHER);
    await expect(first).rejects.toMatchObject(FULL);
    await expect(images.prepare(digest, undefined, ACCOUNT)).rejects.toMatchObject(FULL);
  });
});

describe('an image made of code', () => {
  it('counts to its account, without its base, and is refused before it is written', async () => {
    const dir = await tempDir();
    const images = await testImages(dir, { collectGraceMs: 0, quotas: { accountBytes: 300 * KIB } });
    const made = async (name: string, accountId: string): Promise<string> => {
      const zip = join(dir, `${name}.zip`);
      await writeFile(zip, rawZip([{ name: 'index.mjs', content: `// ${name}\n${'x'.repeat(150 * KIB)}` }]));
      const input = { zip, runtime: 'NODE_22', entryPoint: ['index.mjs'], accountId };
      return (await images.fromCode(input)).digest;
    };
    const used = async (): Promise<number> => 300 * KIB - (await images.usage.room(ACCOUNT));
    const one = await made('one', ACCOUNT);
    // The layer, a config and a manifest; the base has some hundred megabytes.
    expect(await used()).toBeGreaterThan(150 * KIB);
    expect(await used()).toBeLessThan(200 * KIB);
    const put = vi.spyOn(images.store.blobs, 'put');
    await expect(made('two', ACCOUNT)).rejects.toMatchObject(FULL);
    expect(put).not.toHaveBeenCalled();
    await made('two', OTHER);

    // Unpacked it is the same once more.
    await expect(images.prepare(one, undefined, ACCOUNT)).rejects.toMatchObject(FULL);
    const wide = await testImages(dir, { collectGraceMs: 0, quotas: { accountBytes: 600 * KIB } });
    await wide.prepare(one, undefined, ACCOUNT);
    const unpacked = 600 * KIB - (await wide.usage.room(ACCOUNT));
    expect(unpacked).toBeGreaterThan(300 * KIB);
    expect(unpacked).toBeLessThan(400 * KIB);

    await wide.collect(new Set());
    expect(await wide.usage.room(ACCOUNT)).toBe(600 * KIB);
  });

  it('is made of what an account reserves, which others that come have to leave', async () => {
    const images = await testImages(await tempDir(), { quotas: { accountBytes: 1000 } });
    await images.reserve(ACCOUNT, 600, async () => {
      await expect(images.reserve(ACCOUNT, 600, async () => 'never')).rejects.toMatchObject(FULL);
      expect(await images.reserve(OTHER, 600, async () => 'done')).toBe('done');
    });
    expect(await images.reserve(ACCOUNT, 600, async () => 'done')).toBe('done');
  });
});
