import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { ImagesDeps, ImagesRoom } from '../index.ts';
import { openImages, testImages } from '../testing/images.ts';
import { tempDir } from '../testing/temp-dir.ts';
import { type RawZipEntry, rawZip } from '../testing/zip.ts';

const ACCOUNT = '111111111111';
const OTHER = '222222222222';
const KIB = 1024;
const isRoot = process.getuid?.() === 0;
/** What no zip makes smaller. */
const LARGE = randomBytes(200 * KIB);

const own = (text: string): RawZipEntry[] => [{ name: 'index.mjs', content: text }];
const packages: RawZipEntry[] = [
  { name: 'node_modules/dep/large', content: LARGE },
  { name: 'node_modules/dep/run.sh', content: '#!/bin/sh\n', mode: 0o100755 },
  { name: 'node_modules/.bin/run', content: '../dep/run.sh', mode: 0o120777 },
];

/** A store with the base of Node and nothing else: what costs most of making one is done once. */
let pristine: string;
beforeAll(async () => {
  pristine = await mkdtemp(join(tmpdir(), 'images-base-'));
  const images = await openImages(pristine);
  await images.bases.ensure('node:22');
  await images.close();
});
afterAll(() => rm(pristine, { recursive: true, force: true }));

async function room(deps: Partial<ImagesDeps> = {}) {
  const dir = await tempDir();
  await cp(pristine, dir, { recursive: true });
  const images = await testImages(dir, { collectGraceMs: 0, ...deps });
  const make = async (entries: RawZipEntry[], accountId = ACCOUNT, runtime = 'NODE_22', entry = 'index.mjs') => {
    const zip = join(dir, 'code.zip');
    await writeFile(zip, rawZip(entries));
    return (await images.fromCode({ zip, runtime, entryPoint: [entry], accountId })).digest;
  };
  return { dir, images, make };
}

/** The layers of code, without those of its base. */
async function layersOf({ store, bases }: ImagesRoom, digest: string, base = 'node:22'): Promise<string[]> {
  const { layers } = (await store.readImage((await bases.ensure(base)).digest)).manifest;
  return (await store.readImage(digest)).manifest.layers.slice(layers.length).map((layer) => layer.digest);
}

describe('installed packages in code', () => {
  it('are a layer of their own, which the next version has too and which is not written again', async () => {
    const { images, make } = await room();
    const first = await layersOf(images, await make([...own('1'), ...packages]));
    expect(first).toHaveLength(2);
    const put = vi.spyOn(images.store.blobs, 'put');
    const second = await layersOf(images, await make([...own('2'), ...packages]));
    expect(second[0]).toBe(first[0]);
    expect(second[1]).not.toBe(first[1]);
    // The layer of the own files, a config and a manifest.
    expect(put).toHaveBeenCalledTimes(3);
    // Of another account both layers are made anew, and are the same.
    expect(await layersOf(images, await make([...own('2'), ...packages], OTHER))).toEqual(second);
    expect(put).toHaveBeenCalledTimes(5);
    expect(await layersOf(images, await make(own('1')))).toHaveLength(1);
  });

  it('give the same image however they are packed, and another when one changes', async () => {
    const { make } = await room();
    const first = await make([...own('1'), ...packages]);
    expect(await make([...packages.toReversed(), ...own('1')])).toBe(first);
    expect(await make([...packages.map((one) => ({ ...one, store: true })), ...own('1')])).toBe(first);
    expect(await make([{ name: 'node_modules/', mode: 0o040700 }, ...packages, ...own('1')])).toBe(first);
    const changed = [...packages, { name: 'node_modules/dep/more', content: 'x' }];
    expect(await make([...own('1'), ...changed])).not.toBe(first);
    const executable = packages.map((one) => (one.content === LARGE ? { ...one, mode: 0o100755 } : one));
    expect(await make([...own('1'), ...executable])).not.toBe(first);
  });

  it('are not taken for others whose checksum or content is claimed to be theirs', async () => {
    const { make } = await room();
    const file = (content: string, claims?: RawZipEntry['claims']): RawZipEntry[] => [
      ...own('1'),
      { name: 'node_modules/dep/a', content, store: true, ...(claims && { claims }) },
    ];
    await make(file('good'));
    const { crc32 } = await import('node:zlib');
    await expect(make(file('evil', { crc: crc32('good') }))).rejects.toMatchObject({ reason: 'invalid' });
    await expect(make(file('good', { crc: 7 }))).rejects.toMatchObject({ reason: 'invalid' });
    // Neither left a note of itself.
    await expect(make(file('good', { crc: 7 }))).rejects.toMatchObject({ reason: 'invalid' });
    await make(file('evil'));
  });

  it('of Python are what their records name, with the rest where it was', async () => {
    const { images, make } = await room();
    const runtime = (await images.codeRuntimes()).find((name) => name.startsWith('PYTHON')) ?? '';
    if (runtime === '') return console.warn('SKIPPED: no Python on this machine (apt-get install python3)');
    const minor = runtime.slice('PYTHON_3_'.length);
    const installed: RawZipEntry[] = [
      { name: 'dep/__init__.py', content: 'x = 1' },
      { name: 'dep/a, "b".txt', content: 'y' },
      { name: 'bin/dep', content: '#!/bin/sh\n', mode: 0o100755 },
      { name: 'dep-1.dist-info/METADATA', content: 'Name: dep' },
      {
        name: 'dep-1.dist-info/RECORD',
        content:
          '../../bin/dep,sha256=x,1\ndep/__init__.py,sha256=x,5\r\n"dep/a, ""b"".txt",,\ndep-1.dist-info/METADATA,,\n../../../etc/passwd,,\n,,\n',
      },
    ];
    const code = (text: string): RawZipEntry[] => [
      { name: 'main.py', content: text },
      { name: 'dep/own.py', content: text },
      { name: 'lib/', mode: 0o040755 },
    ];
    const layers = async (entries: RawZipEntry[]): Promise<string[]> =>
      layersOf(images, await make(entries, ACCOUNT, runtime, 'main.py'), `python:3.${minor}`);
    const [one, two] = [await layers([...code('1'), ...installed]), await layers([...installed, ...code('2')])];
    expect(one).toHaveLength(2);
    expect(two[0]).toBe(one[0]);
    const digest = await make([...code('1'), ...installed], ACCOUNT, runtime, 'main.py');
    const task = join((await images.prepare(digest)).rootfs, 'var/task');
    expect((await readdir(task, { recursive: true })).sort()).toEqual([
      ...['bin', 'bin/dep', 'dep', 'dep-1.dist-info', 'dep-1.dist-info/METADATA', 'dep-1.dist-info/RECORD'],
      ...['dep/__init__.py', 'dep/a, "b".txt', 'dep/own.py', 'lib', 'main.py'],
    ]);
    if (!isRoot) return;
    for (const path of ['.', 'dep', 'dep/own.py', 'dep/__init__.py', 'bin', 'lib']) {
      const { uid, gid, mode } = await stat(join(task, path));
      expect([path, uid, gid, mode & 0o777]).toEqual([path, 10001, 10001, path.endsWith('.py') ? 0o644 : 0o755]);
    }
  });
});

describe('the unpacked packages of code', () => {
  const inode = async (images: ImagesRoom, digest: string): Promise<number> =>
    (await stat(join((await images.prepare(digest)).rootfs, 'var/task/node_modules/dep/large'))).ino;

  it('are the same files in each version, also when the version is gone that had them first', async () => {
    const { dir, images, make } = await room();
    const [one, two] = [await make([...own('1'), ...packages]), await make([...own('2'), ...packages])];
    const first = await inode(images, one);
    expect(await inode(images, two)).toBe(first);
    const { rootfs } = await images.prepare(two);
    expect(await readFile(join(rootfs, 'var/task/index.mjs'), 'utf8')).toBe('2');
    expect(await readFile(join(rootfs, 'var/task/node_modules/.bin/run'), 'utf8')).toBe('#!/bin/sh\n');
    // A version that nobody unpacks before the others are gone.
    await images.collect(new Set([two]));
    const three = await make([...own('3'), ...packages]);
    await images.collect(new Set([three]));
    expect(await inode(images, three)).toBe(first);
    await images.close();
    const again = await testImages(dir, { collectGraceMs: 0 });
    await again.collect(new Set([three]));
    const four = await make([...own('4'), ...packages]);
    expect(await inode(again, four)).toBe(first);

    await again.collect(new Set());
    expect(await readdir(join(dir, 'images/rootfs'))).toEqual([]);
    const store = again.store;
    expect(await store.blobs.has((await layersOf(again, await make(own('5'))))[0] ?? '')).toBe(true);
  });

  it('leave no note of their layer behind once that is collected', async () => {
    const { dir, images, make } = await room();
    const notes = async (): Promise<string[]> => readdir(join(dir, 'images/layers'));
    await images.bases.ensure('node:22');
    const before = await notes();
    const digest = await make([...own('1'), ...packages]);
    await images.collect(new Set([digest]));
    expect(await notes()).toHaveLength(before.length + 1);
    await images.collect(new Set());
    expect((await notes()).sort()).toEqual(before.sort());
  });

  it('count to their account once, as layer and as files, for all versions together', async () => {
    const most = 4000 * KIB;
    const { images, make } = await room({ quotas: { accountBytes: most } });
    const used = async (): Promise<number> => {
      images.usage.forget(ACCOUNT);
      return (most - (await images.usage.room(ACCOUNT))) / KIB;
    };
    const one = await make([...own('1'), ...packages]);
    await images.prepare(one, undefined, ACCOUNT);
    const ofOne = await used();
    // The layer, the files, and some blocks.
    expect(ofOne).toBeGreaterThan(400);
    expect(ofOne).toBeLessThan(500);
    const two = await make([...own('2'), ...packages]);
    await images.prepare(two, undefined, ACCOUNT);
    expect((await used()) - ofOne).toBeLessThan(50);
    // With the first one gone, and with the second alone in a new process.
    await images.collect(new Set([two]));
    expect(await used()).toBeGreaterThan(400);
    expect(await used()).toBeLessThan(500);
    await images.collect(new Set());
    expect(await used()).toBe(0);
  });

  it('are refused with what says so where the account has no room for them', async () => {
    const { images, make } = await room({ quotas: { accountBytes: 300 * KIB } });
    const digest = await make([...own('1'), ...packages]);
    await expect(images.prepare(digest, undefined, ACCOUNT)).rejects.toMatchObject({ reason: 'quota' });
    await images.prepare(digest, undefined);
  });
});
