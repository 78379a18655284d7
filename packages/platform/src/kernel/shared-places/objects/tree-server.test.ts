import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TreeClient } from './serving/tree-client.ts';
import { type Tree, TreeError } from './tree.ts';
import { type Hello, MAX_LINE, PROTOCOL } from './tree-lines.ts';
import { TreeServer } from './tree-server.ts';

describe('the socket between a platform and its mounts', () => {
  let dir: string;
  let socket: string;
  let server: TreeServer;
  let asked: string[];
  let peers: number;
  const hello: Hello = { hello: { protocol: PROTOCOL, id: 'fsap-00000001', source: 's3://bucket/', pid: 1 } };
  const tree = {
    stat: async (path: string) => {
      asked.push(path);
      if (path === 'gone') throw new TreeError('ENOENT');
      if (path === 'broken') throw new Error('a bug');
      return { kind: 'directory' as const };
    },
    list: async () => [{ name: 'é'.repeat(120_000), kind: 'file' as const }],
    create: () => new Promise<never>(() => undefined),
  } as unknown as Tree;

  const listen = (over: Partial<Tree> = {}) =>
    TreeServer.listen({
      socket,
      treeFor: ({ id }) => (id === hello.hello.id ? { ...tree, ...over } : undefined),
      onPeer: () => {
        peers += 1;
      },
      onNote: () => undefined,
    });

  beforeEach(async () => {
    asked = [];
    peers = 0;
    dir = await mkdtemp(join(tmpdir(), 'tree-server-'));
    socket = join(dir, 's');
    server = await listen();
  });
  afterEach(async () => {
    await server.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('carries answers of any length, and errors by their name', async () => {
    const client = new TreeClient({ socket, hello, onEnd: () => undefined, onAlone: () => undefined });
    try {
      expect(await client.stat('x')).toEqual({ kind: 'directory' });
      expect((await client.list(''))[0]?.name).toBe('é'.repeat(120_000));
      await expect(client.stat('gone')).rejects.toMatchObject({ errno: 'ENOENT' });
      await expect(client.stat('broken')).rejects.toMatchObject({ errno: 'EIO' });
    } finally {
      client.close();
    }
  });

  it('says of an answer that is too long that it is, and goes on', async () => {
    // Written as six characters each.
    const name = { long: '\x01'.repeat(100_000), 'too long': '\x01'.repeat(Math.ceil(MAX_LINE / 6)) };
    await server.close();
    server = await listen({
      list: async (path) => [{ name: path === 'long' ? name.long : name['too long'], kind: 'file' }],
    });
    const client = new TreeClient({ socket, hello, onEnd: () => undefined, onAlone: () => undefined });
    try {
      expect((await client.list('long'))[0]?.name.length).toBe(name.long.length);
      await expect(client.list('too long')).rejects.toMatchObject({ errno: 'EOVERFLOW' });
      expect(await client.stat('x')).toEqual({ kind: 'directory' });
      expect(peers).toBe(1);
    } finally {
      client.close();
    }
  });

  it('asks again after a platform that has gone, and does not know what that one did', async () => {
    const client = new TreeClient({ socket, hello, onEnd: () => undefined, onAlone: () => undefined });
    try {
      await client.stat('x');
      // It may be the one that the first platform made.
      const waiting = expect(client.create('new')).rejects.toMatchObject({ errno: 'EIO' });
      await client.stat('y');
      await server.close();
      const meanwhile = client.stat('z');
      server = await listen({ create: () => Promise.reject(new TreeError('EEXIST')) });
      await waiting;
      expect(await meanwhile).toEqual({ kind: 'directory' });
      await expect(client.create('new')).rejects.toMatchObject({ errno: 'EEXIST' });
    } finally {
      client.close();
    }
  });

  it('knows what a reading call was told the second time, and ends what nobody waits for', async () => {
    const begun = Promise.withResolvers<AbortSignal | undefined>();
    await server.close();
    const list: Tree['list'] = (_path, signal) => {
      begun.resolve(signal);
      return new Promise(() => undefined);
    };
    server = await listen({ list });
    const client = new TreeClient({ socket, hello, onEnd: () => undefined, onAlone: () => undefined });
    try {
      const waiting = expect(client.list('x')).rejects.toMatchObject({ errno: 'ENOENT' });
      const signal = await begun.promise;
      if (!signal || signal.aborted) throw new Error('it is wanted');
      const aborted = once(signal, 'abort', { signal: AbortSignal.timeout(10_000) });
      await server.close();
      await aborted;
      server = await listen({ list: () => Promise.reject(new TreeError('ENOENT')) });
      await waiting;
    } finally {
      client.close();
    }
  });

  it('asks once for many who want the same list, after they wanted it', async () => {
    const asks: string[] = [];
    const first = Promise.withResolvers<void>();
    await server.close();
    server = await listen({
      list: async (path) => {
        asks.push(path);
        if (asks.length === 1) await first.promise;
        return [{ name: `${asks.length}`, kind: 'file' }];
      },
    });
    const client = new TreeClient({ socket, hello, onEnd: () => undefined, onAlone: () => undefined });
    try {
      const many = Array.from({ length: 5 }, () => client.list('x'));
      const other = client.list('y');
      await client.stat('z');
      expect(asks).toEqual(['x']);
      first.resolve();
      const [one, ...rest] = (await Promise.all(many)).map(([found]) => found?.name);
      await other;
      expect(new Set(rest).size).toBe(1);
      expect(rest).not.toContain(one);
      expect(asks.filter((path) => path === 'x')).toHaveLength(2);
      await client.list('x');
      expect(asks.filter((path) => path === 'x')).toHaveLength(3);
    } finally {
      client.close();
    }
  });

  it('can be opened by its owner alone, whatever the umask', async () => {
    const before = process.umask(0);
    const open = createServer();
    try {
      await server.close();
      server = await listen();
      const control = join(dir, 'control');
      await new Promise<void>((resolve) => open.listen(control, resolve));
      expect((await stat(control)).mode & 0o777).toBe(0o777);
      expect((await stat(socket)).mode & 0o777).toBe(0o600);
    } finally {
      process.umask(before);
      open.close();
    }
  });

  it('ends a peer that nobody wants', async () => {
    const other: Hello = { hello: { ...hello.hello, id: 'fsap-00000002' } };
    await new Promise<void>((resolve) => {
      const client = new TreeClient({
        socket,
        hello: other,
        onAlone: () => undefined,
        onEnd: () => {
          client.close();
          resolve();
        },
      });
    });
  });

  it('cuts off whoever writes something else, and serves the next', async () => {
    const junk = fc.oneof(
      fc.string(),
      fc.json(),
      fc.constantFrom('{"call":1,"op":"stat","args":["x"]}', '{"hello":{}}', '{"call":"x"}', 'null', '[]'),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(junk, { minLength: 1, maxLength: 4 }), async (lines) => {
        const peer = connect(socket);
        const ended = closed(peer);
        peer.end(`${lines.join('\n')}\n`);
        await ended;
        expect(asked).toEqual([]);
      }),
      { numRuns: 50 },
    );
    const client = new TreeClient({ socket, hello, onEnd: () => undefined, onAlone: () => undefined });
    expect(await client.stat('x')).toEqual({ kind: 'directory' });
    client.close();
  });
});

function closed(socket: Socket): Promise<void> {
  socket.on('error', () => undefined);
  socket.resume();
  return new Promise((resolve) => socket.on('close', () => resolve()));
}
