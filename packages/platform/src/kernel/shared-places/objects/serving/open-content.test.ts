import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FileEntry, TreeError } from '../tree.ts';
import { Gate } from './gate.ts';
import { OpenContent, type OpenContentDeps, Room } from './open-content.ts';

describe('the content of an open file', () => {
  let directory: string;
  let serial = 0;
  const entry: FileEntry = { kind: 'file', size: 4, modifiedAt: 5 };
  const stat = async () => entry;
  const store = stat;
  const fetch = async (_path: string, local: string): Promise<FileEntry> => {
    await writeFile(join(directory, local), 'four');
    return entry;
  };
  const content = (over: Partial<OpenContentDeps> = {}): OpenContent =>
    new OpenContent({
      tree: { stat, fetch, store },
      room: new Room(10),
      directory,
      newLocal: () => String(++serial),
      path: () => 'x',
      now: () => 7,
      ...over,
    });

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'open-content-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  it('has no more room than all have together, and gives it back', async () => {
    const room = new Room(10);
    const [one, two] = [content({ room }), content({ room })];
    await one.load();
    await two.load();
    one.write(4, Buffer.from('xx'));
    expect(() => two.write(4, Buffer.from('x'))).toThrow(expect.objectContaining({ errno: 'ENOSPC' }));
    await expect(one.truncate(2 ** 50)).rejects.toMatchObject({ errno: 'ENOSPC' });
    await expect(content({ room }).load()).rejects.toMatchObject({ errno: 'ENOSPC' });
    one.close();
    two.write('end', Buffer.from('xxxxxx'));
    expect(two.read(2, 100).toString()).toBe('urxxxxxx');
    two.close();
    expect(await readdir(directory)).toEqual([]);
  });

  it('is fetched once for many, and again when that has failed', async () => {
    let fetched = 0;
    const second = async (path: string, local: string): Promise<FileEntry> => {
      fetched += 1;
      if (fetched === 1) throw new TreeError('EIO');
      return fetch(path, local);
    };
    const one = content({ tree: { stat, fetch: second, store } });
    await expect(Promise.all([one.load(), one.load()])).rejects.toMatchObject({ errno: 'EIO' });
    await Promise.all([one.load(), one.load()]);
    expect(fetched).toBe(2);
    one.close();
  });

  it('has its room before it comes, and neither room nor disk when it does not', async () => {
    const room = new Room(10);
    const goOn = Promise.withResolvers<void>();
    const asked: string[] = [];
    const late = async (path: string, local: string): Promise<FileEntry> => {
      asked.push(local);
      await fetch(path, local);
      await goOn.promise;
      throw new TreeError('EIO');
    };
    const tree = { stat, fetch: late, store };
    const [one, two, three] = [content({ room, tree }), content({ room, tree }), content({ room, tree })];
    const both = Promise.allSettled([one.load(), two.load()]);
    // 4 bytes each, of 10.
    await expect(three.load()).rejects.toMatchObject({ errno: 'ENOSPC' });
    goOn.resolve();
    expect((await both).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(asked).toHaveLength(2);
    expect(await readdir(directory)).toEqual([]);
    // Nor when it has come and cannot be opened.
    const nowhere = content({ room, tree: { stat, fetch: stat, store } });
    await expect(nowhere.load()).rejects.toMatchObject({ code: 'ENOENT' });
    const all = content({ room });
    await all.load();
    all.write(0, Buffer.alloc(10));
    all.close();
  });

  it('is fetched again when it has grown or moved meanwhile, each time beside what came before', async () => {
    let size = 3;
    let path = 'old';
    const locals: string[] = [];
    const changing = async (at: string, local: string, maxBytes: number): Promise<FileEntry> => {
      locals.push(local);
      if (path === 'old') path = 'new';
      if (at !== path) throw new TreeError('ENOENT');
      if (maxBytes < 4) {
        size = 4;
        throw new TreeError('EFBIG');
      }
      return fetch(at, local);
    };
    const tree = { stat: async () => ({ ...entry, size }), fetch: changing, store };
    const one = content({ tree, path: () => path });
    await one.load();
    expect(one.read(0, 10).toString()).toBe('four');
    expect(new Set(locals).size).toBe(3);
    one.close();
    // And not for ever.
    size = 3;
    const grows = () => Promise.reject(new TreeError('EFBIG'));
    await expect(content({ tree: { ...tree, fetch: grows } }).load()).rejects.toMatchObject({ errno: 'EFBIG' });
  });

  it('stays to be stored until all that was written is, and never under a name that is gone', async () => {
    const stored: string[] = [];
    let fails = true;
    let path: string | undefined = 'x';
    const store = async (at: string): Promise<FileEntry> => {
      if (fails) throw new TreeError('EIO');
      stored.push(at);
      // Written while it is on its way.
      if (stored.length === 1) one.write('end', Buffer.from('b'));
      return entry;
    };
    const one = content({ tree: { stat, fetch, store }, path: () => path });
    one.begin();
    await one.flush();
    expect(stored).toEqual([]);
    one.write(0, Buffer.from('a'));
    await expect(one.flush()).rejects.toMatchObject({ errno: 'EIO' });
    fails = false;
    await one.flush();
    expect(one.dirty).toBe(true);
    path = 'moved';
    await one.flush();
    expect(one.dirty).toBe(false);
    expect(stored).toEqual(['x', 'moved']);
    one.write(0, Buffer.from('c'));
    path = undefined;
    await one.flush();
    expect(stored).toHaveLength(2);
    one.close();
  });
});

it('lets many in at once, and one alone after those before it', async () => {
  const gate = new Gate();
  const order: string[] = [];
  const first = Promise.withResolvers<void>();
  const work = (name: string, until?: Promise<void>) => async (): Promise<void> => {
    order.push(`${name} begins`);
    await until;
    order.push(`${name} ends`);
  };
  const all = [
    gate.shared(work('a', first.promise)),
    gate.shared(work('b', first.promise)),
    gate.exclusive(async () => {
      await work('alone')();
      throw new Error('fails');
    }),
    gate.shared(work('c')),
    gate.exclusive(work('last')),
  ];
  first.resolve();
  expect((await Promise.allSettled(all)).map(({ status }) => status)).toEqual([
    ...['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  ]);
  expect(order.slice(0, 6)).toEqual(['a begins', 'b begins', 'a ends', 'b ends', 'alone begins', 'alone ends']);
  expect(order).toHaveLength(10);
});
