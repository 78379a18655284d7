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
  const content = (over: Partial<OpenContentDeps> = {}): OpenContent => {
    const local = String(++serial);
    return new OpenContent({
      tree: {
        fetch: async () => {
          await writeFile(join(directory, local), 'four');
          return entry;
        },
        store: async () => entry,
      },
      room: new Room(10),
      directory,
      local,
      path: () => 'x',
      now: () => 7,
      ...over,
    });
  };

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
    const fetch = async (): Promise<FileEntry> => {
      fetched += 1;
      if (fetched === 1) throw new TreeError('EIO');
      await writeFile(join(directory, String(serial)), 'four');
      return entry;
    };
    const one = content({ tree: { fetch, store: async () => entry } });
    await expect(Promise.all([one.load(), one.load()])).rejects.toMatchObject({ errno: 'EIO' });
    await Promise.all([one.load(), one.load()]);
    expect(fetched).toBe(2);
    one.close();
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
    const one = content({ tree: { fetch: async () => entry, store }, path: () => path });
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
