import { chmod, unlink } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import { orMissing } from '../../system-error.ts';
import { CallsUnderWay } from './calls-under-way.ts';
import { type Tree, TreeError } from './tree.ts';
import { treeErrorOf } from './tree-error-of.ts';
import { type Hello, onLines, writeLine } from './tree-lines.ts';

/** The process that serves one mount, while it is connected. */
export interface TreePeer {
  hello: Hello['hello'];
  /** Asks it to store what it holds and to end. */
  end(): void;
  closed: Promise<void>;
}

export interface TreeServerOptions {
  socket: string;
  /** What the mount of a peer shows; undefined for one that is not wanted any more. */
  treeFor(hello: Hello['hello']): Tree | undefined;
  /** A peer has come. */
  onPeer(peer: TreePeer): void;
  onNote(id: string, text: string): void;
}

type Run = (tree: Tree, args: readonly unknown[], signal: AbortSignal) => Promise<unknown>;

const OPERATIONS: Record<string, Run> = {
  stat: (tree, [path]) => tree.stat(text(path)),
  list: (tree, [path], signal) => tree.list(text(path), signal),
  fetch: (tree, [path, local, maxBytes], signal) => tree.fetch(text(path), text(local), count(maxBytes), signal),
  store: (tree, [path, local], signal) => tree.store(text(path), text(local), signal),
  create: (tree, [path]) => tree.create(text(path)),
  mkdir: (tree, [path]) => tree.mkdir(text(path)),
  rmdir: (tree, [path]) => tree.rmdir(text(path)),
  unlink: (tree, [path]) => tree.unlink(text(path)),
  rename: (tree, [path, to, replace], signal) => tree.rename(text(path), text(to), replace === true, signal),
};

/** Answers the processes that serve mounts, on a socket that root alone can open. */
export class TreeServer {
  readonly #options: TreeServerOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(options: TreeServerOptions) {
    this.#options = options;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  /** Takes the place of a server that was killed. Rejects when nothing can listen there. */
  static async listen(options: TreeServerOptions): Promise<TreeServer> {
    const server = new TreeServer(options);
    await orMissing(unlink(options.socket));
    await new Promise<void>((resolve, reject) => {
      server.#server.once('error', reject);
      server.#server.listen(options.socket, resolve);
    });
    await chmod(options.socket, 0o600);
    return server;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    const calls = new CallsUnderWay();
    const closed = new Promise<void>((resolve) => {
      socket.on('close', () => {
        this.#sockets.delete(socket);
        // It asks again for what it still wants.
        calls.end();
        resolve();
      });
    });
    socket.on('error', () => undefined);
    let hello: Hello['hello'] | undefined;
    let tree: Tree | undefined;
    onLines(socket, (value) => {
      if (!isRecord(value)) throw new Error('a line holds an object');
      if (isHello(value)) {
        hello = value.hello;
        tree = this.#options.treeFor(hello);
        const end = (): void => {
          writeLine(socket, { end: true });
        };
        if (tree) this.#options.onPeer({ hello, end, closed });
        else end();
      } else if (typeof value.note === 'string') this.#options.onNote(hello?.id ?? '', value.note);
      else if (typeof value.call === 'number' && tree) void answer(socket, calls, value.call, tree, value);
      else throw new Error('a line is none that is known');
    });
  }
}

async function answer(
  socket: Socket,
  calls: CallsUnderWay,
  call: number,
  tree: Tree,
  { op, args }: Record<string, unknown>,
): Promise<void> {
  try {
    const name = typeof op === 'string' ? op : '';
    const run = Object.hasOwn(OPERATIONS, name) ? OPERATIONS[name] : undefined;
    if (!run) throw new TreeError('ENOSYS');
    const result = await calls.run(name, (signal) => run(tree, Array.isArray(args) ? args : [], signal));
    if (!writeLine(socket, { answer: call, result })) throw new TreeError('EOVERFLOW');
  } catch (error) {
    writeLine(socket, { answer: call, errno: treeErrorOf(error).errno });
  }
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw new TreeError('EINVAL');
  return value;
}

function count(value: unknown): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw new TreeError('EINVAL');
  return value;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isHello(value: Record<string, unknown>): value is Record<string, unknown> & Hello {
  const { hello } = value;
  return (
    isRecord(hello) &&
    typeof hello.protocol === 'number' &&
    typeof hello.id === 'string' &&
    typeof hello.source === 'string' &&
    typeof hello.pid === 'number'
  );
}
