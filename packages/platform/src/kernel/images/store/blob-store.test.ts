import { randomBytes } from 'node:crypto';
import { mkdir, readdir, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SingleFlight } from '../../single-flight.ts';
import { digestOf } from '../digest.ts';
import { tempDir } from '../testing/temp-dir.ts';
import { BlobStore } from './blob-store.ts';
import { TempFiles } from './temp-files.ts';

async function open(): Promise<{ blobs: BlobStore; temp: TempFiles }> {
  const dir = await tempDir();
  const temp = new TempFiles(join(dir, 'tmp'));
  await temp.sweep();
  const blobs = new BlobStore(dir, temp);
  await blobs.init();
  return { blobs, temp };
}

async function* chunks(...parts: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* parts;
}

describe('a blob', () => {
  it('is named by its content and readable only by its owner', async () => {
    const { blobs } = await open();
    const content = randomBytes(1000);
    const info = await blobs.put(chunks(content.subarray(0, 10), content.subarray(10)), { maxBytes: 2000 });
    expect(info).toEqual({ digest: digestOf(content), size: 1000 });
    expect((await stat(blobs.path(info.digest))).mode & 0o777).toBe(0o600);
    expect((await blobs.readBytes(info.digest, 1000)).equals(content)).toBe(true);
  });

  it.each([
    ['another content', { digest: digestOf(Buffer.from('other')), maxBytes: 10 }, 'corrupt'],
    ['too short', { size: 9, maxBytes: 10 }, 'corrupt'],
    ['too long', { size: 2, maxBytes: 10 }, 'corrupt'],
    ['over the bound', { maxBytes: 2 }, 'too-large'],
  ])('%s is refused and leaves nothing', async (_name, expected, reason) => {
    const { blobs, temp } = await open();
    await expect(blobs.put(chunks(Buffer.from('hello')), expected)).rejects.toMatchObject({ reason });
    expect(await readdir(temp.dir)).toEqual([]);
    expect(await blobs.has(digestOf(Buffer.from('hello')))).toBe(false);
  });

  it('that breaks off leaves nothing', async () => {
    const { blobs, temp } = await open();
    const broken = (async function* () {
      yield Buffer.from('he');
      throw new Error('line cut');
    })();
    await expect(blobs.put(broken, { maxBytes: 10 })).rejects.toThrow('line cut');
    expect(await readdir(temp.dir)).toEqual([]);
  });

  it('altered on disk is found corrupt and removed; cut short it counts as missing', async () => {
    const { blobs } = await open();
    const { digest } = await blobs.putBytes(Buffer.from('hello'));
    await writeFile(blobs.path(digest), 'jello');
    await expect(blobs.readBytes(digest, 10)).rejects.toMatchObject({
      reason: 'corrupt',
      message: expect.stringContaining(digest),
    });
    expect(await blobs.has(digest)).toBe(false);
    await blobs.putBytes(Buffer.from('hello'));
    await truncate(blobs.path(digest), 3);
    expect(await blobs.has(digest, 5)).toBe(false);
    await blobs.ensure({ digest, size: 5 }, () => chunks(Buffer.from('hello')));
    expect((await blobs.readBytes(digest, 10)).toString()).toBe('hello');
  });

  it('wanted by many at once is fetched once', async () => {
    const { blobs } = await open();
    const content = randomBytes(100);
    let fetches = 0;
    const fetch = () => {
      fetches += 1;
      return chunks(content);
    };
    const wanted = { digest: digestOf(content), size: 100 };
    await Promise.all(Array.from({ length: 10 }, () => blobs.ensure(wanted, fetch)));
    await blobs.ensure(wanted, fetch);
    expect(fetches).toBe(1);
  });
});

describe('single flight', () => {
  it('one caller giving up does not end the work of the others; all giving up does', async () => {
    const flights = new SingleFlight<string>();
    let finish = (_value: string): void => {};
    let aborted = false;
    const work = (signal: AbortSignal): Promise<string> =>
      new Promise((resolve, reject) => {
        finish = resolve;
        signal.addEventListener('abort', () => {
          aborted = true;
          reject(signal.reason);
        });
      });
    const first = new AbortController();
    const a = flights.run('k', work, first.signal);
    const b = flights.run('k', work);
    first.abort(new Error('a left'));
    await expect(a).rejects.toThrow('a left');
    expect(aborted).toBe(false);
    finish('done');
    expect(await b).toBe('done');

    const second = new AbortController();
    const c = flights.run('k', work, second.signal);
    second.abort(new Error('c left'));
    await expect(c).rejects.toThrow('c left');
    expect(aborted).toBe(true);
    expect(await flights.run('k', async () => 'fresh')).toBe('fresh');
    expect(flights.keys()).toEqual([]);
  });

  it('a failure reaches all and is not remembered', async () => {
    const flights = new SingleFlight<number>();
    const failing = async (): Promise<number> => {
      await new Promise((resolve) => setImmediate(resolve));
      throw new Error('no');
    };
    const results = await Promise.allSettled([flights.run('k', failing), flights.run('k', failing)]);
    expect(results.map((r) => r.status)).toEqual(['rejected', 'rejected']);
    expect(await flights.run('k', async () => 7)).toBe(7);
  });
});

describe('what a crash leaves', () => {
  it('is swept when its process is gone, and kept while it lives', async () => {
    const dir = await tempDir();
    const temp = new TempFiles(join(dir, 'tmp'));
    await temp.sweep();
    const mine = temp.next();
    await mkdir(mine);
    await mkdir(join(temp.dir, '4194305-dead', 'deep'), { recursive: true });
    await writeFile(join(temp.dir, 'odd'), '');
    await mkdir(join(temp.dir, '1-alive'));
    await temp.sweep();
    expect((await readdir(temp.dir)).sort()).toEqual(['1-alive', mine.slice(temp.dir.length + 1)].sort());
  });
});
