import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Entry, type FileEntry, type Tree, TreeError } from '../tree.ts';
import { FuseFiles } from './fuse-files.ts';
import { FuseRequest, OP, ROOT_ID } from './fuse-wire.ts';

const O_RDWR = 2;

// Asked as the kernel asks, without one: so that one request can come in the midst of another.
describe('a file that is opened while its name changes', () => {
  let directory: string;
  let objects: Map<string, string>;
  let files: FuseFiles;
  let waiting: Map<bigint, (message: Buffer) => void>;
  let unique: bigint;
  /** What moving waits for once it has copied, and removing before it removes. */
  let midway: { reached: PromiseWithResolvers<void>; goOn: PromiseWithResolvers<void> } | undefined;

  const half = async (): Promise<void> => {
    midway?.reached.resolve();
    await midway?.goOn.promise;
  };
  const found = (path: string): FileEntry => {
    const content = objects.get(path);
    if (content === undefined) throw new TreeError('ENOENT');
    return { kind: 'file', size: content.length, modifiedAt: 1 };
  };
  const tree: Pick<Tree, 'stat' | 'fetch' | 'store' | 'rename' | 'unlink'> = {
    stat: async (path): Promise<Entry> => found(path),
    fetch: async (path, local) => {
      const entry = found(path);
      await writeFile(join(directory, local), objects.get(path) ?? '');
      return entry;
    },
    store: async (path, local) => {
      objects.set(path, await readFile(join(directory, local), 'utf8'));
      return found(path);
    },
    rename: async (path, to) => {
      found(path);
      objects.set(to, objects.get(path) ?? '');
      await half();
      objects.delete(path);
      return null;
    },
    unlink: async (path) => {
      await half();
      objects.delete(path);
      return null;
    },
  };

  /** Resolves with the body of the answer; rejects with the number of the error. */
  const ask = (op: number, node: number, body: Buffer): Promise<Buffer> => {
    const message = Buffer.alloc(40 + body.length);
    unique += 1n;
    message.writeUInt32LE(message.length, 0);
    message.writeUInt32LE(op, 4);
    message.writeBigUInt64LE(unique, 8);
    message.writeBigUInt64LE(BigInt(node), 16);
    body.copy(message, 40);
    const answer = new Promise<Buffer>((resolve) => waiting.set(unique, resolve));
    files.take(new FuseRequest(message));
    return answer.then((whole) => {
      const errno = whole.readInt32LE(4);
      if (errno !== 0) throw new Error(`errno ${-errno}`);
      return whole.subarray(16);
    });
  };
  const names = (...all: string[]): Buffer => Buffer.from(all.map((name) => `${name}\0`).join(''));
  const numbers = (bytes: number, ...at: [number, number][]): Buffer => {
    const out = Buffer.alloc(bytes);
    for (const [offset, value] of at) out.writeBigUInt64LE(BigInt(value), offset);
    return out;
  };
  const lookup = async (name: string): Promise<number> =>
    Number((await ask(OP.LOOKUP, ROOT_ID, names(name))).readBigUInt64LE(0));
  const rename = (from: string, to: string) =>
    ask(OP.RENAME, ROOT_ID, Buffer.concat([numbers(8, [0, ROOT_ID]), names(from, to)]));
  /** Opens it, writes, and returns a close(2) that has not been waited for, with what lets go of it after that. */
  const write = async (node: number, text: string) => {
    const handle = Number((await ask(OP.OPEN, node, numbers(8, [0, O_RDWR]))).readBigUInt64LE(0));
    const head = numbers(40, [0, handle]);
    head.writeUInt32LE(text.length, 16);
    await ask(OP.WRITE, node, Buffer.concat([head, Buffer.from(text)]));
    const closed = ask(OP.FLUSH, node, numbers(24, [0, handle]));
    return { closed, release: () => ask(OP.RELEASE, node, numbers(24, [0, handle])) };
  };

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'fuse-files-'));
    objects = new Map([['x', 'before']]);
    waiting = new Map();
    unique = 0n;
    midway = undefined;
    const none = () => Promise.reject(new Error('not asked for'));
    files = new FuseFiles({
      tree: { ...tree, list: none, create: none, mkdir: none, rmdir: none },
      answer: (message) => {
        waiting.get(message.readBigUInt64LE(8))?.(message);
        return true;
      },
      directory,
      roomBytes: 1000,
      now: () => 1,
      note: (text) => {
        throw new Error(text);
      },
    });
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  const begin = (): void => {
    midway = { reached: Promise.withResolvers<void>(), goOn: Promise.withResolvers<void>() };
  };

  it('keeps what close(2) returned for', async () => {
    const node = await lookup('x');
    const first = await write(node, 'quiet!');
    await first.closed;
    await first.release();
    expect(objects.get('x')).toBe('quiet!');
    begin();
    const moved = rename('x', 'y');
    await midway?.reached.promise;
    const second = await write(node, 'during');
    midway?.goOn.resolve();
    await Promise.all([moved, second.closed]);
    await second.release();
    expect([...objects]).toEqual([['y', 'during']]);
  });

  it('is not stored again under a name that is replaced or removed meanwhile', async () => {
    objects.set('y', 'other!');
    const [x, y] = [await lookup('x'), await lookup('y')];
    begin();
    const moved = rename('x', 'y');
    await midway?.reached.promise;
    const replaced = await write(y, 'REPLACED');
    midway?.goOn.resolve();
    await Promise.all([moved, replaced.closed]);
    await replaced.release();
    expect([...objects]).toEqual([['y', 'before']]);
    begin();
    const removed = ask(OP.UNLINK, ROOT_ID, names('y'));
    await midway?.reached.promise;
    const late = await write(x, 'REMOVED');
    midway?.goOn.resolve();
    await Promise.all([removed, late.closed]);
    await late.release();
    expect([...objects]).toEqual([]);
  });
});
