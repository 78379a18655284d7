import {
  appendFile,
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import pino from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../clock.ts';
import { machinePlatform } from './architecture.ts';
import { textFile } from './formats/layer.ts';
import { type ImagesRoom, type LayerEntry, writeImage } from './index.ts';
import { SharedFolder } from './store/shared-folder.ts';
import { openImages } from './testing/images.ts';
import { tempDir } from './testing/temp-dir.ts';

const isRoot = process.getuid?.() === 0;
const OWNER = { uid: 0, gid: 0 };
const entries = async (): Promise<LayerEntry[]> => [
  textFile('etc/greeting', 'hello'),
  { type: 'symlink', path: 'etc/link', target: 'greeting', ...OWNER },
  textFile('usr/bin/tool', '#!/bin/sh\n', OWNER, 0o755),
];
const never = (): Promise<LayerEntry[]> => Promise.reject(new Error('made again'));

/** Stores of two data directories that share `shared`. */
async function twoStores(shared: string): Promise<[ImagesRoom, ImagesRoom]> {
  return [
    await openImages(await tempDir(), { sharedDir: shared }),
    await openImages(await tempDir(), { sharedDir: shared }),
  ];
}

/** Makes the same image of one layer in a store. */
async function imageIn(images: ImagesRoom, make = entries): Promise<string> {
  const layer = await images.layer('greeting', make);
  const run = { entrypoint: [], cmd: [], env: [], workingDir: '/', user: '0:0' };
  return writeImage(images.store, { platform: machinePlatform(), layers: [layer], run });
}

const inode = async (path: string): Promise<number> => (await stat(path)).ino;

/** The only entry of a shared folder. */
async function onlyEntry(shared: string, kind: 'layers' | 'trees'): Promise<string> {
  const names = await readdir(join(shared, kind));
  expect(names).toHaveLength(1);
  return join(shared, kind, names[0] ?? '');
}

describe('layers that data directories share', () => {
  it('are made once, and are the same file', async () => {
    const [one, two] = await twoStores(await tempDir());
    const first = await one.layer('greeting', entries);
    expect(await two.layer('greeting', never)).toEqual(first);
    expect(await inode(two.store.blobs.path(first.digest))).toBe(await inode(one.store.blobs.path(first.digest)));
    await expect(two.layer('another key', never)).rejects.toThrow('made again');
  });

  it('are made again by a data directory that shares nothing', async () => {
    const alone = await openImages(await tempDir());
    await (await openImages(await tempDir(), { sharedDir: await tempDir() })).layer('greeting', entries);
    await expect(alone.layer('greeting', never)).rejects.toThrow('made again');
    await alone.layer('greeting', entries);
    await alone.layer('greeting', never);
  });

  it.each([
    ['another byte', (file: string) => writeFile(file, Buffer.alloc(5120, 7), { flag: 'r+' })],
    ['a missing end', (file: string) => writeFile(file, 'short')],
    ['no content', (file: string) => rm(file)],
  ])('with %s are not taken but made anew', async (_what, damage) => {
    const shared = await tempDir();
    const [one, two] = await twoStores(shared);
    const { digest } = await one.layer('greeting', entries);
    const before = await readFile(one.store.blobs.path(digest));
    const content = join(await onlyEntry(shared, 'layers'), 'layer.tar');
    // What was altered is not the other store's file.
    await rm(content);
    await writeFile(content, before);
    await damage(content);
    let made = 0;
    const counting = () => {
      made += 1;
      return entries();
    };
    expect((await two.layer('greeting', counting)).digest).toBe(digest);
    expect(made).toBe(1);
    expect(await readFile(join(await onlyEntry(shared, 'layers'), 'layer.tar'))).toEqual(before);
  });

  it('may be made by two at once', async () => {
    const shared = await tempDir();
    const [one, two] = await twoStores(shared);
    const made = await Promise.all([one, two].map((images) => images.layer('greeting', entries)));
    expect(made[0]).toEqual(made[1]);
    await onlyEntry(shared, 'layers');
  });
});

describe('unpacked images that data directories share', () => {
  it('are cloned without being unpacked again', async () => {
    const shared = await tempDir();
    const [one, two] = await twoStores(shared);
    const first = await one.prepareCommon(await imageIn(one));
    await one.close();
    const digest = await imageIn(two, never);
    for (const layer of (await two.store.readImage(digest)).manifest.layers) await two.store.blobs.remove(layer.digest);
    // Control: without what is shared it would have to be unpacked.
    const alone = await openImages(await tempDir());
    await imageIn(alone);
    for (const layer of (await alone.store.readImage(digest)).manifest.layers)
      await alone.store.blobs.remove(layer.digest);
    await expect(alone.prepareCommon(digest)).rejects.toMatchObject({ reason: 'corrupt' });

    const second = await two.prepareCommon(digest);
    expect(await readFile(join(second.rootfs, 'etc/link'), 'utf8')).toBe('hello');
    expect(await inode(join(second.rootfs, 'etc/greeting'))).toBe(await inode(join(first.rootfs, 'etc/greeting')));
    await rm(first.rootfs, { recursive: true });
    await rm(shared, { recursive: true });
    expect(await readFile(join(second.rootfs, 'etc/greeting'), 'utf8')).toBe('hello');
    await two.close();
  });

  it.each([
    ['written into', (dir: string) => appendFile(join(dir, 'etc/greeting'), '!')],
    ['with a file more', (dir: string) => writeFile(join(dir, 'etc/more'), '')],
    ['with another mode', (dir: string) => chmod(join(dir, 'usr/bin/tool'), 0o4755)],
    [
      'with another link',
      async (dir: string) => {
        await rm(join(dir, 'etc/link'));
        await symlink('/etc/passwd', join(dir, 'etc/link'));
      },
    ],
    ['without its files', (dir: string) => rm(dir, { recursive: true })],
  ])('%s are not used, and replaced', async (_what, damage) => {
    const shared = await tempDir();
    const [one, two] = await twoStores(shared);
    await one.prepareCommon(await imageIn(one));
    await one.close();
    await damage(join(await onlyEntry(shared, 'trees'), 'rootfs'));
    const { rootfs } = await two.prepareCommon(await imageIn(two));
    expect(await readFile(join(rootfs, 'etc/greeting'), 'utf8')).toBe('hello');
    expect((await readdir(join(rootfs, 'etc'))).sort()).toEqual(['greeting', 'link']);
    expect(await readlink(join(rootfs, 'etc/link'))).toBe('greeting');
    expect((await stat(join(rootfs, 'usr/bin/tool'))).mode & 0o7777).toBe(0o755);
    await two.close();
    const kept = join(await onlyEntry(shared, 'trees'), 'rootfs');
    expect(await readFile(join(kept, 'etc/greeting'), 'utf8')).toBe('hello');
  });

  it('are copied from another disk, links as links', async () => {
    const shared = await mkdtemp('/dev/shm/shared-images-');
    onTestFinished(() => rm(shared, { recursive: true, force: true }));
    const [one, two] = await twoStores(shared);
    expect((await stat(shared)).dev).not.toBe((await stat(one.store.dir)).dev);
    await one.prepareCommon(await imageIn(one));
    await one.close();
    const { rootfs } = await two.prepareCommon(await imageIn(two, never));
    expect(await readlink(join(rootfs, 'etc/link'))).toBe('greeting');
    expect(await readFile(join(rootfs, 'etc/link'), 'utf8')).toBe('hello');
    expect((await stat(join(rootfs, 'usr/bin/tool'))).mode & 0o7777).toBe(0o755);
    expect((await stat(join(rootfs, 'etc/greeting'))).mtimeMs).toBe(Date.UTC(1980, 0, 2));
    await two.close();
  });

  it('are not those of agents: only what every data directory makes is kept', async () => {
    const shared = await tempDir();
    const [one] = await twoStores(shared);
    await one.prepare(await imageIn(one));
    await one.close();
    expect(await readdir(shared)).toEqual(['layers']);
  });
});

describe('the folder that they share', () => {
  const folderIn = (dir: string, most = 2) =>
    new SharedFolder({ dir, most, clock: systemClock, log: pino({ level: 'silent' }) });
  const fill = (dir: string): Promise<void> => writeFile(join(dir, 'file'), 'content');

  it('is made for its user alone', async () => {
    const dir = join(await tempDir(), 'made', 'here');
    const folder = folderIn(dir);
    await folder.add('one', fill);
    expect(await folder.find('one')).toBe(join(dir, 'one'));
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
  });

  const unsafe: [string, (dir: string) => Promise<void>][] = [
    ['the group may write', (dir) => chmod(dir, 0o770)],
    ['everybody may write', (dir) => chmod(dir, 0o707)],
    ...(isRoot
      ? [['another user owns', (dir: string) => chown(dir, 12345, 0)] as [string, (dir: string) => Promise<void>]]
      : []),
    [
      'is a link',
      async (dir) => {
        await rm(dir, { recursive: true });
        await mkdir(`${dir}-elsewhere`);
        await symlink(`${dir}-elsewhere`, dir);
      },
    ],
  ];
  it.each(unsafe)('is not used when it is one that %s', async (_what, spoil) => {
    const dir = join(await tempDir(), 'folder');
    await mkdir(dir, { mode: 0o700 });
    await folderIn(dir).add('one', fill);
    expect(await folderIn(dir).find('one')).toBeDefined();
    await spoil(dir);
    const folder = folderIn(dir);
    await folder.add('two', fill);
    expect([await folder.find('one'), await folder.find('two')]).toEqual([undefined, undefined]);
  });

  it('holds what was used last, and nothing half-made of yesterday', async () => {
    const dir = await tempDir();
    await chmod(dir, 0o700);
    const folder = folderIn(dir);
    await folder.add('one', fill);
    await folder.add('two', fill);
    await utimes(join(dir, 'one'), 1000, 1000);
    await utimes(join(dir, 'two'), 2000, 2000);
    await folder.find('one');
    await mkdir(join(dir, '.new-old'));
    await utimes(join(dir, '.new-old'), 1000, 1000);
    await mkdir(join(dir, '.new-now'));
    await folder.add('three', fill);
    expect((await readdir(dir)).sort()).toEqual(['.new-now', 'one', 'three']);
  });

  it('keeps nothing of an entry that could not be filled', async () => {
    const dir = await tempDir();
    await chmod(dir, 0o700);
    await folderIn(dir).add('one', () => Promise.reject(new Error('no')));
    expect(await readdir(dir)).toEqual([]);
  });
});
