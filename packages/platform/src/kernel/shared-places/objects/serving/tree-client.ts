import { connect, type Socket } from 'node:net';
import { type Entry, type FileEntry, isErrno, type NamedEntry, type Tree, TreeError } from '../tree.ts';
import { type Answer, type Call, type End, type Hello, onLines, writeLine } from '../tree-lines.ts';

export interface TreeClientOptions {
  /** Path of the platform's socket. */
  socket: string;
  hello: Hello;
  /** The platform wants this process to end. */
  onEnd(): void;
  /** Nobody has answered on the socket for so long, in milliseconds; called again after as long. */
  onAlone(ms: number): void;
}

const RETRY_MS = 200;
const ALONE_MS = 5_000;
const CALL_MS = 60_000;
/** Of what moves contents: as large as files here may be, over a slow line. */
const LONG_CALL_MS = 600_000;
const LONG = new Set(['fetch', 'store', 'rename']);

interface Pending {
  call: Call;
  /** Whether a platform that is gone may have done it. */
  repeated: boolean;
  resolve(result: unknown): void;
  reject(error: TreeError): void;
}

/**
 * A tree that the platform keeps. While the platform is gone calls wait for the next one, each as long as it may take at all, and then fail with
 * EIO; so a platform that crashed and came back is a pause.
 */
export class TreeClient implements Tree {
  readonly #options: TreeClientOptions;
  readonly #pending = new Map<number, Pending>();
  #socket: Socket | undefined;
  #last = 0;
  #aloneSince = Date.now();
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: TreeClientOptions) {
    this.#options = options;
    this.#connect();
  }

  stat(path: string): Promise<Entry> {
    return this.#call('stat', path) as Promise<Entry>;
  }
  list(path: string): Promise<NamedEntry[]> {
    return this.#call('list', path) as Promise<NamedEntry[]>;
  }
  fetch(path: string, local: string, maxBytes: number): Promise<FileEntry> {
    return this.#call('fetch', path, local, maxBytes) as Promise<FileEntry>;
  }
  store(path: string, local: string): Promise<FileEntry> {
    return this.#call('store', path, local) as Promise<FileEntry>;
  }
  create(path: string): Promise<FileEntry> {
    return this.#call('create', path) as Promise<FileEntry>;
  }
  mkdir(path: string): Promise<null> {
    return this.#call('mkdir', path) as Promise<null>;
  }
  rmdir(path: string): Promise<null> {
    return this.#call('rmdir', path) as Promise<null>;
  }
  unlink(path: string): Promise<null> {
    return this.#call('unlink', path) as Promise<null>;
  }
  rename(path: string, to: string, replace: boolean): Promise<null> {
    return this.#call('rename', path, to, replace) as Promise<null>;
  }

  /** Calls under way are never answered. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    this.#socket?.destroy();
  }

  /** For the platform's log. */
  note(text: string): void {
    if (this.#socket) writeLine(this.#socket, { note: text.slice(0, 2000) });
  }

  /** Both sides are the same program; what comes back is what was asked for. */
  #call(op: string, ...args: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#last += 1;
      const call: Call = { call: this.#last, op, args };
      const timer = setTimeout(
        () => this.#done({ answer: call.call, errno: 'EIO' }),
        LONG.has(op) ? LONG_CALL_MS : CALL_MS,
      );
      const settled =
        <A extends unknown[]>(settle: (...args: A) => void) =>
        (...args: A): void => {
          clearTimeout(timer);
          settle(...args);
        };
      this.#pending.set(call.call, { call, repeated: false, resolve: settled(resolve), reject: settled(reject) });
      if (this.#socket) writeLine(this.#socket, call);
    });
  }

  #connect(): void {
    const { socket: path, hello, onAlone } = this.#options;
    const socket = connect(path);
    socket.on('connect', () => {
      this.#socket = socket;
      writeLine(socket, hello);
      for (const { call } of this.#pending.values()) writeLine(socket, call);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      if (this.#socket === socket) {
        this.#socket = undefined;
        this.#aloneSince = Date.now();
        for (const pending of this.#pending.values()) pending.repeated = true;
      }
      const alone = Date.now() - this.#aloneSince;
      if (alone >= ALONE_MS) onAlone(alone);
      if (!this.#closed) this.#retry = setTimeout(() => this.#connect(), RETRY_MS);
    });
    onLines(socket, (value) => this.#done(value as Answer | End));
  }

  #done(value: Answer | End): void {
    if ('end' in value) {
      this.#options.onEnd();
      return;
    }
    const pending = this.#pending.get(value.answer);
    if (!pending) return;
    this.#pending.delete(value.answer);
    const { errno, result } = value;
    if (errno === undefined) pending.resolve(result);
    // Of what was asked twice it is not known whether the first time did it.
    else pending.reject(new TreeError(isErrno(errno) && !pending.repeated ? errno : 'EIO'));
  }
}
