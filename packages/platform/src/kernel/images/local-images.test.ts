import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { mkdir, readdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { machinePlatform } from './architecture.ts';
import { digestOf } from './digest.ts';
import { makeImage, makeIndex, otherArchitecture, writeLayout } from './testing/image.ts';
import { testImages } from './testing/images.ts';
import { tar } from './testing/tar.ts';
import { tempDir } from './testing/temp-dir.ts';

const here = machinePlatform().architecture;
const other = otherArchitecture();

describe('an OCI layout directory', () => {
  it('is brought in and unpacked once for all who ask at the same time', async () => {
    const dir = await tempDir();
    const image = await makeImage([[{ name: 'bin/app', content: 'one' }], [{ name: 'bin/app', content: 'two' }]]);
    await writeLayout(join(dir, 'layout'), makeIndex([{ image, architecture: here, tag: 'v1' }]), [image]);
    const images = await testImages(join(dir, 'data'));
    const resolved = await images.resolve(`oci:${dir}/layout:v1`);
    expect(resolved).toEqual({
      digest: image.digest,
      architecture: here,
      sizeBytes: [...image.blobs.values()].reduce((sum, b) => sum + b.length, 0),
    });

    const all = await Promise.all(Array.from({ length: 5 }, () => images.prepare(resolved.digest)));
    expect(new Set(all.map((p) => p.rootfs)).size).toBe(1);
    expect(all[0]).toEqual({
      digest: image.digest,
      rootfs: join(dir, 'data/images/rootfs', image.digest.slice(7)),
      config: { entrypoint: ['/bin/app'], cmd: ['--x'], env: ['A=1'], workingDir: '/srv', user: '1000:1000' },
    });
    expect(readFileSync(join(all[0]?.rootfs ?? '', 'bin/app'), 'utf8')).toBe('two');
    expect(await readdir(join(dir, 'data/images/tmp'))).toEqual([]);
  });

  it('of several architectures gives this machine’s; of another’s only, an error that names both', async () => {
    const dir = await tempDir();
    const mine = await makeImage([[{ name: 'a', content: 'mine' }]]);
    const theirs = await makeImage([[{ name: 'a', content: 'theirs' }]], other);
    await writeLayout(
      join(dir, 'both'),
      makeIndex([
        { image: theirs, architecture: other },
        { image: mine, architecture: here },
      ]),
      [mine, theirs],
    );
    await writeLayout(join(dir, 'theirs'), makeIndex([{ image: theirs, architecture: other }]), [theirs]);
    // The descriptor may lie or say nothing; the config is what counts.
    const silent = Buffer.from(
      makeIndex([{ image: theirs, architecture: other }])
        .toString()
        .replace(/,"platform":\{[^}]*\}/, ''),
    );
    await writeLayout(join(dir, 'silent'), silent, [theirs]);
    const images = await testImages(join(dir, 'data'));
    expect((await images.resolve(`oci:${dir}/both`)).digest).toBe(mine.digest);
    for (const name of ['theirs', 'silent']) {
      await expect(images.resolve(`oci:${dir}/${name}`)).rejects.toMatchObject({
        reason: 'architecture',
        message: expect.stringMatching(new RegExp(`linux/${other}.*linux/${here}`)),
      });
    }
    // No layer of an image that cannot run was copied.
    const layer = [...theirs.blobs.keys()][0] ?? '';
    expect(await images.store.blobs.has(layer)).toBe(false);
  });

  it('of several images for this machine is not guessed from: the tags are named', async () => {
    const dir = await tempDir();
    const [one, two] = [
      await makeImage([[{ name: 'a', content: '1' }]]),
      await makeImage([[{ name: 'a', content: '2' }]]),
    ];
    const index = makeIndex([
      { image: one, architecture: here, tag: 'v1' },
      { image: two, architecture: here, tag: 'v2' },
    ]).toString();
    await writeLayout(join(dir, 'same'), Buffer.from(index), [one, two]);
    // As umoci and skopeo write them, without a platform.
    await writeLayout(join(dir, 'silent'), Buffer.from(index.replace(/,"platform":\{[^}]*\}/g, '')), [one, two]);
    const images = await testImages(join(dir, 'data'));
    for (const name of ['same', 'silent']) {
      await expect(images.resolve(`oci:${dir}/${name}`)).rejects.toMatchObject({
        reason: 'invalid',
        message: expect.stringContaining(`tagged v1, v2; name one by its tag, as in oci:${dir}/${name}:v1`),
      });
      expect((await images.resolve(`oci:${dir}/${name}:v2`)).digest).toBe(two.digest);
    }
  });

  it.each([
    ['not there', async (dir: string) => rm(join(dir, 'layout'), { recursive: true }), 'not-found'],
    ['without index', async (dir: string) => rm(join(dir, 'layout/index.json')), 'not-found'],
    ['with a broken index', async (dir: string) => writeFile(join(dir, 'layout/index.json'), '{'), 'invalid'],
    ['with an altered blob', async (dir: string) => alterBlob(join(dir, 'layout')), 'corrupt'],
    ['whose blob is a link to a file of the host', async (dir: string) => linkBlob(join(dir, 'layout')), 'invalid'],
  ])('%s is refused', async (_name, damage, reason) => {
    const dir = await tempDir();
    const image = await makeImage([[{ name: 'a', content: 'x'.repeat(2000) }]]);
    await writeLayout(join(dir, 'layout'), makeIndex([{ image, architecture: here }]), [image]);
    await damage(dir);
    const images = await testImages(join(dir, 'data'));
    await expect(images.resolve(`oci:${dir}/layout`)).rejects.toMatchObject({ reason });
  });

  async function alterBlob(layout: string): Promise<void> {
    for (const name of await readdir(join(layout, 'blobs/sha256'))) {
      const path = join(layout, 'blobs/sha256', name);
      const bytes = readFileSync(path);
      if (bytes[0] === 0x1f) writeFileSync(path, bytes.fill(1, 20, 30));
    }
  }

  async function linkBlob(layout: string): Promise<void> {
    for (const name of await readdir(join(layout, 'blobs/sha256'))) {
      await rm(join(layout, 'blobs/sha256', name));
      await symlink('/etc/hostname', join(layout, 'blobs/sha256', name));
    }
  }

  it('is not read from the data directory, nor from outside the allowed places', async () => {
    const dir = await tempDir();
    const image = await makeImage([[{ name: 'a', content: 'x' }]]);
    const index = makeIndex([{ image, architecture: here }]);
    for (const place of ['data/inside', 'allowed/layout', 'allowed-not/layout'])
      await writeLayout(join(dir, place), index, [image]);
    const images = await testImages(join(dir, 'data'), { localPaths: [join(dir, 'allowed')] });
    await expect(images.resolve(`oci:${dir}/data/inside`)).rejects.toMatchObject({ reason: 'unauthorized' });
    await expect(images.resolve(`oci:${dir}/allowed-not/layout`)).rejects.toMatchObject({ reason: 'unauthorized' });
    await expect(images.resolve(`oci:${dir}/allowed/../allowed-not/layout`)).rejects.toMatchObject({
      reason: 'unauthorized',
    });
    expect((await images.resolve(`oci:${dir}/allowed/layout`)).digest).toBe(image.digest);
  });
});

describe('archives', () => {
  async function layoutEntries(image: Awaited<ReturnType<typeof makeImage>>) {
    const blobs = [...image.blobs, [image.digest, image.manifest] as const];
    return [
      { name: 'oci-layout', content: '{"imageLayoutVersion":"1.0.0"}' },
      { name: 'index.json', content: makeIndex([{ image, architecture: here }]) },
      ...blobs.map(([digest, bytes]) => ({ name: `blobs/sha256/${digest.slice(7)}`, content: bytes })),
    ];
  }

  it.each([
    ['plain', (b: Buffer) => b],
    ['gzip', (b: Buffer) => gzipSync(b)],
  ])('oci-archive, %s', async (_name, pack) => {
    const dir = await tempDir();
    const image = await makeImage([[{ name: 'a', content: 'x' }]]);
    await writeFile(join(dir, 'image.tar'), pack(await tar(await layoutEntries(image))));
    const images = await testImages(join(dir, 'data'));
    expect((await images.resolve(`oci-archive:${dir}/image.tar`)).digest).toBe(image.digest);
    expect(await readdir(join(dir, 'data/images/tmp'))).toEqual([]);
  });

  async function saved(layer: Buffer, extra: { config?: string; layerName?: string } = {}) {
    const config = JSON.stringify({
      os: 'linux',
      architecture: here,
      config: { Cmd: ['/x'] },
      rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
    });
    const manifest = [{ Config: 'c.json', RepoTags: ['app:1'], Layers: [extra.layerName ?? 'l/layer.tar'] }];
    return [
      { name: 'c.json', content: extra.config ?? config },
      { name: 'l/layer.tar', content: layer },
      { name: 'manifest.json', content: JSON.stringify(manifest) },
    ];
  }

  it('docker save', async () => {
    const dir = await tempDir();
    await writeFile(join(dir, 'image.tar'), await tar(await saved(await tar([{ name: 'hello', content: 'world' }]))));
    const images = await testImages(join(dir, 'data'));
    const { digest } = await images.resolve(`docker-archive:${dir}/image.tar:1`);
    expect(readFileSync(join((await images.prepare(digest)).rootfs, 'hello'), 'utf8')).toBe('world');
    await expect(images.resolve(`docker-archive:${dir}/image.tar:2`)).rejects.toMatchObject({ reason: 'not-found' });
  });

  it('a saved image cannot name files of the host as its layers', async () => {
    const dir = await tempDir();
    const secret = await tar([{ name: 'secret', content: 'of the host' }]);
    await writeFile(join(dir, 'secret.tar'), secret);
    const images = await testImages(join(dir, 'data'));
    const entries = await saved(secret);
    // Control: the same archive with the layer inside is taken.
    await writeFile(join(dir, 'control.tar'), await tar(entries));
    expect(await images.resolve(`docker-archive:${dir}/control.tar`)).toMatchObject({ architecture: here });

    const linked = entries.map((e) =>
      e.name === 'l/layer.tar' ? { name: e.name, type: 'symlink' as const, linkname: join(dir, 'secret.tar') } : e,
    );
    const dotted = await saved(secret, { layerName: '../../../../secret.tar' });
    for (const [name, attack] of [
      ['linked', linked],
      ['dotted', dotted],
    ] as const) {
      await writeFile(join(dir, `${name}.tar`), await tar(attack));
      await expect(images.resolve(`docker-archive:${dir}/${name}.tar`)).rejects.toMatchObject({
        reason: expect.stringMatching(/invalid|not-found/),
      });
    }
    expect(await readdir(join(dir, 'data/images/tmp'))).toEqual([]);
  });

  it.each([
    ['missing', undefined, 'not-found'],
    ['empty', Buffer.alloc(0), 'invalid'],
    ['no tar', Buffer.from('hello'.repeat(300)), 'invalid'],
    ['a tar of something else', 'other', 'invalid'],
  ])('%s', async (_name, content, reason) => {
    const dir = await tempDir();
    const bytes = content === 'other' ? await tar([{ name: 'x', content: 'y' }]) : content;
    if (bytes !== undefined) await writeFile(join(dir, 'image.tar'), bytes);
    const images = await testImages(join(dir, 'data'));
    await expect(images.resolve(`oci-archive:${dir}/image.tar`)).rejects.toMatchObject({ reason });
    expect(await readdir(join(dir, 'data/images/tmp'))).toEqual([]);
  });
});

describe('prepare', () => {
  it('a damaged layer is named, removed, and repaired by bringing the image in again', async () => {
    const dir = await tempDir();
    const image = await makeImage([[{ name: 'a', content: 'x'.repeat(5000) }]]);
    await writeLayout(join(dir, 'layout'), makeIndex([{ image, architecture: here }]), [image]);
    const images = await testImages(join(dir, 'data'));
    const layer = [...image.blobs.keys()][0] ?? '';
    const path = join(dir, 'data/images/blobs/sha256', layer.slice(7));
    for (const damage of [
      () => writeFile(path, Buffer.from(image.blobs.get(layer) ?? '').fill(7, 30, 40)),
      () => truncate(path, 20),
      () => rm(path),
    ]) {
      const { digest } = await images.resolve(`oci:${dir}/layout`);
      await damage();
      await expect(images.prepare(digest)).rejects.toMatchObject({
        reason: 'corrupt',
        message: expect.stringContaining(layer),
      });
      expect(existsSync(path)).toBe(false);
      expect(await readdir(join(dir, 'data/images/rootfs'))).toEqual([]);
    }
    const { digest } = await images.resolve(`oci:${dir}/layout`);
    expect(readdirSorted((await images.prepare(digest)).rootfs)).toEqual(['a']);
  });

  it('shares files between images that begin with the same layers, and never changes the other’s', async () => {
    const dir = await tempDir();
    const base = [
      { name: 'big', content: 'base' },
      { name: 'd/x', content: '1' },
      { name: 'd/y', content: '2' },
    ];
    const first = await makeImage([base]);
    const second = await makeImage([base, [{ name: 'big', content: 'mine' }, { name: 'd/.wh.x' }]]);
    const images = await testImages(join(dir, 'data'));
    const roots: string[] = [];
    for (const [i, image] of [first, second].entries()) {
      await writeLayout(join(dir, `l${i}`), makeIndex([{ image, architecture: here }]), [image]);
      roots.push((await images.prepare((await images.resolve(`oci:${dir}/l${i}`)).digest)).rootfs);
    }
    const [one = '', two = ''] = roots;
    expect(statSync(join(two, 'd/y')).ino).toBe(statSync(join(one, 'd/y')).ino);
    expect([readFileSync(join(one, 'big'), 'utf8'), readFileSync(join(two, 'big'), 'utf8')]).toEqual(['base', 'mine']);
    expect([readdirSorted(join(one, 'd')), readdirSorted(join(two, 'd'))]).toEqual([['x', 'y'], ['y']]);
  });

  it('a tree that a crash may have left half-written is unpacked again, a whole one is kept', async () => {
    const dir = await tempDir();
    const image = await makeImage([[{ name: 'a', content: 'x' }]]);
    await writeLayout(join(dir, 'layout'), makeIndex([{ image, architecture: here }]), [image]);
    const before = await testImages(join(dir, 'data'));
    const { digest } = await before.resolve(`oci:${dir}/layout`);
    const { rootfs } = await before.prepare(digest);
    await before.close();
    const record = JSON.parse(readFileSync(`${rootfs}.json`, 'utf8'));
    expect(record.synced).toBe(true);

    await writeFile(join(rootfs, 'mark'), '');
    await (await testImages(join(dir, 'data'))).prepare(digest);
    expect(existsSync(join(rootfs, 'mark'))).toBe(true);
    await writeFile(`${rootfs}.json`, JSON.stringify({ ...record, synced: false, bootId: 'another' }));
    await (await testImages(join(dir, 'data'))).prepare(digest);
    expect(existsSync(join(rootfs, 'mark'))).toBe(false);
  });

  it('aborting ends the work and leaves nothing', async () => {
    const dir = await tempDir();
    const many = Array.from({ length: 3000 }, (_, i) => ({ name: `d${i % 50}/f${i}`, content: 'x' }));
    const image = await makeImage([many]);
    await writeLayout(join(dir, 'layout'), makeIndex([{ image, architecture: here }]), [image]);
    const images = await testImages(join(dir, 'data'));
    const { digest } = await images.resolve(`oci:${dir}/layout`);
    const stop = new AbortController();
    const preparing = images.prepare(digest, stop.signal);
    setTimeout(() => stop.abort(new Error('enough')), 60);
    await expect(preparing).rejects.toThrow('enough');
    // A new attempt waits for the end of the old one, then succeeds.
    expect(readdirSorted((await images.prepare(digest)).rootfs)).toHaveLength(50);
    expect(await readdir(join(dir, 'data/images/tmp'))).toEqual([]);
  });

  it('an image that unpacks to more than is allowed is refused with the limit', async () => {
    const dir = await tempDir();
    const image = await makeImage([[{ name: 'zeros', content: Buffer.alloc(3_000_000) }]]);
    await writeLayout(join(dir, 'layout'), makeIndex([{ image, architecture: here }]), [image]);
    const images = await testImages(join(dir, 'data'), { limits: { imageBytes: 1_048_576 } });
    const { digest } = await images.resolve(`oci:${dir}/layout`);
    await expect(images.prepare(digest)).rejects.toMatchObject({
      reason: 'too-large',
      message: expect.stringContaining('1 MiB'),
    });
    await expect(images.prepare(digestOf(Buffer.from('x')))).rejects.toMatchObject({ reason: 'not-found' });
  });
});

function readdirSorted(path: string): string[] {
  return readdirSync(path).sort();
}

describe('collect', () => {
  it('keeps what is in use and what is young, removes the rest with its trees', async () => {
    const dir = await tempDir();
    const shared = [{ name: 'base', content: 'b'.repeat(1000) }];
    const kept = await makeImage([shared, [{ name: 'k', content: 'kept' }]]);
    const dropped = await makeImage([shared, [{ name: 'd', content: 'dropped' }]]);
    const images = await testImages(join(dir, 'data'), { collectGraceMs: 0 });
    for (const [i, image] of [kept, dropped].entries()) {
      await writeLayout(join(dir, `l${i}`), makeIndex([{ image, architecture: here }]), [image]);
      await images.prepare((await images.resolve(`oci:${dir}/l${i}`)).digest);
    }
    await mkdir(join(dir, 'data/images/rootfs/orphan'));
    const cautious = await testImages(join(dir, 'data'), { collectGraceMs: 60_000 });
    await cautious.collect(new Set([kept.digest, dropped.digest]));
    expect(await images.store.blobs.has(dropped.digest)).toBe(true);

    const { removedBytes } = await images.collect(new Set([kept.digest]));
    expect(removedBytes).toBeGreaterThan(1000);
    for (const digest of [kept.digest, ...kept.blobs.keys()]) expect(await images.store.blobs.has(digest)).toBe(true);
    const gone = [dropped.digest, ...dropped.blobs.keys()].filter((digest) => !kept.blobs.has(digest));
    expect(gone.length).toBe(3);
    for (const digest of gone) expect(await images.store.blobs.has(digest)).toBe(false);
    expect((await readdir(join(dir, 'data/images/rootfs'))).sort()).toEqual(
      [kept.digest.slice(7), `${kept.digest.slice(7)}.json`].sort(),
    );
    await expect(images.prepare(dropped.digest)).rejects.toMatchObject({ reason: 'not-found' });
    expect(existsSync(join((await images.prepare(kept.digest)).rootfs, 'k'))).toBe(true);
  });
});
