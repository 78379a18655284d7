import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { directoryEntries, type ImagesRoom, writeImage, writeLayer } from '../index.ts';
import { openImages } from '../testing/images.ts';
import { tempDir } from '../testing/temp-dir.ts';
import { rawZip } from '../testing/zip.ts';

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;

let dir: string;
let images: ImagesRoom;
let runtimes: string[];
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'images-code-'));
  images = await openImages(dir);
  runtimes = await images.codeRuntimes();
});
afterAll(async () => {
  await images.close();
  await rm(dir, { recursive: true, force: true });
});

async function zip(name: string, entries: Parameters<typeof rawZip>[0]): Promise<string> {
  await writeFile(join(dir, name), rawZip(entries));
  return join(dir, name);
}

/** Runs an image's own command in its root file system, as the user and with the environment that it names. */
async function start(digest: string): Promise<string> {
  const { rootfs, config } = await images.prepare(digest);
  const command = [...config.entrypoint, ...config.cmd];
  const { stdout } = await run(
    'chroot',
    [`--userspec=${config.user}`, rootfs, '/usr/bin/env', '-i', '-C', config.workingDir, ...config.env, ...command],
    { timeout: 30_000 },
  );
  return stdout.trim();
}

const python = (): string => runtimes.find((name) => name.startsWith('PYTHON')) ?? '';

describe('code in Python', () => {
  it.skipIf(!isRoot)('runs with what lies beside it, as the agent, in its own directory', async () => {
    if (python() === '') return console.warn('SKIPPED: no Python on this machine (apt-get install python3)');
    const path = await zip('agent.zip', [
      {
        name: 'main.py',
        content:
          'import os, sys, dep.inner\nprint(os.getcwd(), os.getuid(), dep.inner.NAME, sys.argv[0], "%d_%d" % sys.version_info[:2])\nopen("dep/new", "w")',
      },
      { name: 'dep/inner.py', content: 'NAME = "beside"' },
    ]);
    const image = await images.fromCode({ zip: path, runtime: python(), entryPoint: ['main.py'] });
    const { rootfs, config } = await images.prepare(image.digest);
    expect(config).toMatchObject({ entrypoint: ['python3', 'main.py'], workingDir: '/var/task', user: '10001:10001' });
    expect(config.env).toContain('PYTHONPATH=/var/task');
    expect(config.env.filter((line) => line.startsWith('PATH='))).toEqual([
      'PATH=/var/task/bin:/usr/local/bin:/usr/bin:/bin',
    ]);
    for (const file of ['var/task', 'var/task/dep', 'var/task/main.py']) {
      const { uid, gid } = await stat(join(rootfs, file));
      expect([file, uid, gid]).toEqual([file, 10001, 10001]);
    }
    expect(await start(image.digest)).toBe(`/var/task 10001 beside main.py ${python().slice('PYTHON_'.length)}`);
  });

  it.skipIf(!isRoot)('runs behind a launcher that pip left in bin/, whatever Python its first line names', async () => {
    if (python() === '') return;
    const path = await zip('otel.zip', [
      { name: 'main.py', content: 'print("main ran")' },
      {
        name: 'bin/opentelemetry-instrument',
        mode: 0o100755,
        content:
          '#!/home/somebody/venv/bin/python3\nimport os, sys\nprint("instrumented", flush=True)\nos.execvp(sys.argv[1], sys.argv[1:])',
      },
    ]);
    const image = await images.fromCode({
      zip: path,
      runtime: python(),
      entryPoint: ['opentelemetry-instrument', 'main.py'],
    });
    expect((await start(image.digest)).split('\n')).toEqual(['instrumented', 'main ran']);
  });
});

describe('code in Node', () => {
  it.skipIf(!isRoot)('runs on Node 22, TypeScript too', async () => {
    const path = await zip('node.zip', [
      {
        name: 'index.ts',
        content:
          'import { name } from "dep";\nconst version: string = process.version;\nconsole.log(version.split(".")[0], name, process.cwd(), process.getuid?.());',
      },
      { name: 'package.json', content: '{"type":"module"}' },
      { name: 'node_modules/dep/index.js', content: 'export const name = "dep";' },
      { name: 'node_modules/dep/package.json', content: '{"type":"module","main":"index.js"}' },
    ]);
    const image = await images.fromCode({ zip: path, runtime: 'NODE_22', entryPoint: ['index.ts'] });
    expect(await start(image.digest)).toBe('v22 dep /var/task 10001');
  });
});

describe('an image of code', () => {
  it('has the same digest for the same zip, in another store too, and another for another', async () => {
    const a = await zip('a.zip', [
      { name: 'index.js', content: '1' },
      { name: 'x/y', content: '2' },
    ]);
    // The same files, packed in another order and another way: what counts is what is in it.
    const b = await zip('b.zip', [
      { name: 'x/y', content: '2', store: true },
      { name: 'index.js', content: '1' },
    ]);
    const c = await zip('c.zip', [
      { name: 'index.js', content: '1' },
      { name: 'x/y', content: '3' },
    ]);
    const make = (store: ImagesRoom, path: string) =>
      store.fromCode({ zip: path, runtime: 'NODE_22', entryPoint: ['index.js'] }).then((image) => image.digest);
    const first = await make(images, a);
    expect([await make(images, a), await make(images, b)]).toEqual([first, first]);
    expect(await make(images, c)).not.toBe(first);
    const other = await tempDir();
    await mkdir(join(other, 'images/bases'), { recursive: true });
    // Node 22 need not be fetched twice to show it.
    await symlink(join(dir, 'images/bases/programs'), join(other, 'images/bases/programs'));
    expect(await make(await openImages(other), a)).toBe(first);
  });

  it('shares the files of its base on disk', async () => {
    const path = await zip('a.zip', [{ name: 'index.js', content: '1' }]);
    const { digest } = await images.fromCode({ zip: path, runtime: 'NODE_22', entryPoint: ['index.js'] });
    const base = await images.prepare((await images.bases.ensure('node:22')).digest);
    const { rootfs } = await images.prepare(digest);
    expect((await stat(join(rootfs, 'usr/bin/node'))).ino).toBe((await stat(join(base.rootfs, 'usr/bin/node'))).ino);
    expect(await readFile(join(rootfs, 'var/task/index.js'), 'utf8')).toBe('1');
  });

  it('for a runtime that is not here names those that are', async () => {
    const path = await zip('a.zip', [{ name: 'main.py', content: '1' }]);
    const bare = await openImages(await tempDir(), { pythonDirs: [] });
    for (const runtime of ['PYTHON_3_14', 'RUBY_3']) {
      await expect(bare.fromCode({ zip: path, runtime, entryPoint: ['main.py'] })).rejects.toMatchObject({
        reason: 'runtime-unavailable',
        message: expect.stringMatching(/can be had here: NODE_22/),
      });
    }
  });

  it.each([
    ['a zip that is not there', undefined, ['index.js'], 'not-found'],
    ['no zip', 'text', ['index.js'], 'invalid'],
    ['a name that leads out', [{ name: '../x' }], ['index.js'], 'invalid'],
    ['a missing entry point', [{ name: 'other.js' }], ['index.js'], 'invalid'],
    ['a damaged file', [{ name: 'index.js', content: 'x', claims: { crc: 7 } }], ['index.js'], 'invalid'],
  ])('is not made of %s, and nothing stays behind', async (_name, entries, entryPoint, reason) => {
    const path = typeof entries === 'object' ? await zip('bad.zip', entries) : join(dir, `bad-${entries}`);
    if (entries === 'text') await writeFile(path, 'hello'.repeat(100));
    await expect(images.fromCode({ zip: path, runtime: 'NODE_22', entryPoint })).rejects.toMatchObject({
      name: 'ImageError',
      reason,
    });
  });
});

describe('an application layer on a base', () => {
  it('is the same bytes for the same directory, whoever owns it and whenever it was touched', async () => {
    const app = join(dir, 'app');
    await mkdir(join(app, 'sub'), { recursive: true });
    await writeFile(join(app, 'run.sh'), '#!/bin/sh\ncat "$(dirname "$0")/link"\n', { mode: 0o750 });
    await writeFile(join(app, 'sub/text'), 'hello from the layer');
    await writeFile(join(app, 'secret.env'), 'x');
    await symlink('sub/text', join(app, 'link'));
    const layer = async () =>
      writeLayer(
        images.store.blobs,
        await directoryEntries(app, { target: '/app', include: (path) => path !== 'secret.env' }),
      );
    const first = await layer();
    await writeFile(join(app, 'sub/text'), 'hello from the layer');
    expect(await layer()).toEqual(first);

    const base = await images.store.readImage((await images.bases.ensure('node:22')).digest);
    const digest = await writeImage(images.store, {
      platform: base.config.platform,
      layers: [...base.manifest.layers, first],
      run: { ...base.config.run, cmd: ['/app/run.sh'] },
    });
    if (isRoot) expect(await start(digest)).toBe('hello from the layer');
    await expect(stat(join((await images.prepare(digest)).rootfs, 'app/secret.env'))).rejects.toThrow('ENOENT');
  });
});
