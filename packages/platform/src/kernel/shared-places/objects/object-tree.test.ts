import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startS3, type TestS3 } from '../../../services/s3/testing/s3-server.ts';
import { LowDiskError } from '../../disk-room.ts';
import { createS3Store, guardedStore, ObjectError, type ObjectStore } from '../../objects/index.ts';
import { until } from '../../sandbox/testing/until.ts';
import { ObjectTree } from './object-tree.ts';

describe.each(['the embedded store', 'an S3 endpoint'])('objects of %s as files', (kind) => {
  let dir: string;
  let s3: TestS3;
  let store: ObjectStore;
  let tree: ObjectTree;
  let serial = 0;
  let bucket: string;
  const failures: unknown[] = [];

  const open = (prefix: string, over: Partial<ObjectStore> = {}): ObjectTree =>
    new ObjectTree({
      store: { ...store, ...over },
      bucket,
      prefix,
      directory: join(dir, 'local'),
      maxFileBytes: 100,
      onFailure: (error) => failures.push(error),
    });
  const put = (key: string, body = key) => store.put({ bucket, key }, bytes(body));
  const keys = async () => (await store.list(bucket, { limit: 1000 })).objects.map(({ key }) => key);
  const names = async (path: string) => (await tree.list(path)).map(({ name, kind }) => `${name} ${kind}`).sort();

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'object-tree-'));
    await mkdir(join(dir, 'local'));
    s3 = await startS3({ directory: join(dir, 'objects') });
    const owner = s3.credentials.accountId;
    store = kind === 'the embedded store' ? s3.store : createS3Store({ client: s3.client(), owner });
  });
  beforeEach(async () => {
    bucket = `bucket-${serial++}`;
    await store.createBucket(bucket, s3.credentials.accountId);
    tree = open('a/b');
    failures.length = 0;
  });
  afterAll(async () => {
    await s3.stop();
    await rm(dir, { recursive: true, force: true });
  });

  it('take nothing new while the disk of the store is nearly full, and can be read and removed', async () => {
    let low = false;
    const need = (): void => {
      if (low) throw new LowDiskError({ free: 0 }, 1);
    };
    const guarded = open('a/b', guardedStore(store, need));
    await writeFile(join(dir, 'local/7'), 'new');
    await guarded.store('before', '7');
    low = true;
    await expect(guarded.store('x', '7')).rejects.toMatchObject({ errno: 'ENOSPC' });
    await expect(guarded.create('x')).rejects.toMatchObject({ errno: 'ENOSPC' });
    expect(await guarded.stat('before')).toMatchObject({ kind: 'file' });
    await guarded.unlink('before');
    low = false;
    await guarded.store('x', '7');
    expect(await names('')).toEqual(['x file']);
  });

  it('are those below the prefix, whichever client wrote them', async () => {
    for (const key of ['a/b/x', 'a/b/d/y', 'a/b/d/e/z', 'a/bb/x', 'a/b', 'x', 'a/b/made/']) await put(key);
    expect(await names('')).toEqual(['d directory', 'made directory', 'x file']);
    expect(await names('d')).toEqual(['e directory', 'y file']);
    expect(await names('made')).toEqual([]);
    expect(await tree.stat('d/e')).toEqual({ kind: 'directory' });
    expect(await tree.stat('x')).toMatchObject({ kind: 'file', size: 5 });
    expect(await open('').stat('a/bb/x')).toMatchObject({ kind: 'file' });
  });

  it('have names that files can have; others are not shown', async () => {
    for (const key of ['a/b/..', 'a/b/../x', 'a/b//x', 'a/b/./x', `a/b/${'n'.repeat(256)}`, 'a/b/fine']) await put(key);
    expect(await names('')).toEqual(['fine file']);
  });

  it.each(['', '..', '../x', 'd/../../x', '/x', 'd//x', 'x/', './x', 'x\0'])('are never outside: %j', async (path) => {
    await put('a/x');
    await put('a/b/d/x');
    await writeFile(join(dir, 'local/1'), 'mine');
    const attempts = [
      () => tree.fetch(path, '2', 1000),
      () => tree.store(path, '1'),
      () => tree.create(path),
      () => tree.unlink(path),
      () => tree.rename('d/x', path, true),
    ];
    for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject({ errno: 'EINVAL' });
    expect(await keys()).toEqual(['a/b/d/x', 'a/x']);
  });

  it('are handed over in the one directory for that', async () => {
    await put('a/b/x');
    for (const local of ['../x', '/etc/passwd', 'x', ''])
      for (const attempt of [() => tree.fetch('x', local, 1000), () => tree.store('x', local)])
        await expect(attempt(), local).rejects.toMatchObject({ errno: 'EINVAL' });
    await tree.fetch('x', '7', 1000);
    expect(await readFile(join(dir, 'local/7'), 'utf8')).toBe('a/b/x');
  });

  it('are created by one of many', async () => {
    const all = await Promise.allSettled(Array.from({ length: 8 }, () => tree.create('lock')));
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const one of all.filter(({ status }) => status === 'rejected'))
      expect(one).toMatchObject({ reason: { errno: 'EEXIST' } });
  });

  it('leave their directory when they go, and keep what is in it', async () => {
    await put('a/b/d/e/x');
    await tree.unlink('d/e/x');
    expect(await names('d/e')).toEqual([]);
    await expect(tree.rmdir('d')).rejects.toMatchObject({ errno: 'ENOTEMPTY' });
    await tree.rmdir('d/e');
    expect(await names('d')).toEqual([]);
    await tree.rmdir('d');
    await expect(tree.list('d')).rejects.toMatchObject({ errno: 'ENOENT' });
    await expect(tree.rmdir('d')).rejects.toMatchObject({ errno: 'ENOENT' });
    expect(await keys()).toEqual([]);
  });

  it('move, with all that is below them, and replace what rename(2) replaces', async () => {
    for (const key of ['a/b/d/x', 'a/b/d/e/y', 'a/b/f', 'a/b/full/z']) await put(key);
    await tree.mkdir('empty');
    await tree.rename('d', 'empty', true);
    expect(await names('empty')).toEqual(['e directory', 'x file']);
    await expect(tree.stat('d')).rejects.toMatchObject({ errno: 'ENOENT' });
    const refused: [string, string, boolean, string][] = [
      ['empty', 'full', true, 'ENOTEMPTY'],
      ['empty', 'f', true, 'ENOTDIR'],
      ['f', 'full', true, 'EISDIR'],
      ['f', 'empty/x', false, 'EEXIST'],
      ['empty', 'empty/e/in', true, 'EINVAL'],
      ['none', 'other', true, 'ENOENT'],
    ];
    const before = await keys();
    for (const [from, to, replace, errno] of refused)
      await expect(tree.rename(from, to, replace), `${from} to ${to}`).rejects.toMatchObject({ errno });
    expect(await keys()).toEqual(before);
    await tree.rename('f', 'empty/x', true);
    await tree.fetch('empty/x', '9', 1000);
    expect(await readFile(join(dir, 'local/9'), 'utf8')).toBe('a/b/f');
  });

  it('are under one of two names whatever fails while they move', async () => {
    await put('a/b/from', 'content');
    for (const over of [
      { put: () => Promise.reject(new Error('lost')) },
      { delete: () => Promise.reject(new Error('lost')) },
    ]) {
      await expect(open('a/b', over).rename('from', 'to', true)).rejects.toMatchObject({ errno: 'EIO' });
      expect(await keys()).toContain('a/b/from');
    }
    expect(failures).toHaveLength(2);
  });

  it('of two contents for one file the later one stays, however long the first takes', async () => {
    await writeFile(join(dir, 'local/11'), 'first');
    await writeFile(join(dir, 'local/12'), 'second');
    const slow = Promise.withResolvers<void>();
    let calls = 0;
    const late = open('a/b', {
      put: async (...args) => {
        calls += 1;
        if (calls === 1) await slow.promise;
        return store.put(...args);
      },
    });
    const both = [late.store('x', '11'), late.store('x', '12')];
    slow.resolve();
    await Promise.all(both);
    expect(await tree.stat('x')).toMatchObject({ size: 'second'.length });
  });

  it('leave nothing behind that came half-way', async () => {
    await put('a/b/x');
    const local = async () => (await readdir(join(dir, 'local'))).includes('21');
    let half = false;
    const get: ObjectStore['get'] = async (place) => {
      const { info, body: whole } = await store.get(place);
      whole.destroy();
      const body = async function* () {
        yield Buffer.from('a');
        // Once it is on the disk.
        await until(local);
        half = true;
        throw new Error('lost');
      };
      return { info, body: Readable.from(body()) };
    };
    await expect(open('a/b', { get }).fetch('x', '21', 1000)).rejects.toMatchObject({ errno: 'EIO' });
    expect([half, await local()]).toEqual([true, false]);
  });

  it('stop moving and coming when they are not wanted any more', async () => {
    const all = Array.from({ length: 16 }, (_, i) => `a/b/d/${i}`);
    for (const key of all) await put(key);
    const abort = new AbortController();
    let deleted = 0;
    const remove: ObjectStore['delete'] = async (place) => {
      deleted += 1;
      abort.abort();
      return store.delete(place);
    };
    const moved = open('a/b', { delete: remove }).rename('d', 'e', true, abort.signal);
    await expect(moved).rejects.toMatchObject({ errno: 'EIO' });
    // Those that were under way, and none after it was answered.
    expect(deleted).toBeGreaterThan(0);
    expect(deleted).toBeLessThanOrEqual(8);
    expect((await names('d')).length).toBe(16 - deleted);
    expect((await names('e')).length).toBe(16);
    await expect(tree.fetch('e/1', '22', 1000, abort.signal)).rejects.toMatchObject({ errno: 'EIO' });
    expect(await readdir(join(dir, 'local'))).not.toContain('22');
    await writeFile(join(dir, 'local/23'), 'late');
    await expect(tree.store('e/1', '23', abort.signal)).rejects.toMatchObject({ errno: 'EIO' });
    expect(await tree.stat('e/1')).toMatchObject({ size: 'a/b/d/1'.length });
    // Wanted, they move whole.
    await tree.rename('d', 'e/in', true, new AbortController().signal);
    expect((await names('e/in')).length).toBe(16 - deleted);
  });

  it('fail in the words of a file system', async () => {
    await put('a/b/large', 'x'.repeat(101));
    await expect(tree.fetch('large', '13', 1000)).rejects.toMatchObject({ errno: 'EFBIG' });
    await put('a/b/small', 'x'.repeat(11));
    await expect(tree.fetch('small', '13', 10)).rejects.toMatchObject({ errno: 'EFBIG' });
    await tree.fetch('small', '13', 11);
    await expect(tree.fetch('none', '13', 1000)).rejects.toMatchObject({ errno: 'ENOENT' });
    const long = Array.from({ length: 6 }, () => 'n'.repeat(200)).join('/');
    await expect(tree.create(long)).rejects.toMatchObject({ errno: 'ENAMETOOLONG' });
    await expect(tree.create('\ud800')).rejects.toMatchObject({ errno: 'EILSEQ' });
    const denied = { head: () => Promise.reject(new ObjectError('AccessDenied', 'no')) };
    await expect(open('a/b', denied).stat('x')).rejects.toMatchObject({ errno: 'EACCES' });
  });
});

async function* bytes(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}
