import { connect, type Socket } from 'node:net';
import { type Entry, type FileEntry, isErrno, type NamedEntry, type Tree, TreeError } from '../tree.ts';
import { type Answer, type Call, callMs, type End, type Hello, onLines, writeLine } from '../tree-lines.ts';

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
/** Longer than the platform works at it: as long as it does, what it touches is not let go of here. */
const ANSWER_MS = 20_000;
/** Done twice they are as done once. */
const READING = new Set(['stat', 'list', 'fetch']);

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
  /** Under way, and to be asked for after those, by path. */
  readonly #lists = new Map<string, Promise<NamedEntry[]>>();
  readonly #nextLists = new Map<string, Promise<NamedEntry[]>>();
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
  /** Of many who ask meanwhile all but the first share the next, for what the first gets may be older than what they know of. */
  list(path: string): Promise<NamedEntry[]> {
    const next = this.#nextLists.get(path);
    if (next) return next;
    const ask = (): Promise<NamedEntry[]> => {
      this.#nextLists.delete(path);
      const asked = this.#call('list', path).finally(() => {
        if (this.#lists.get(path) === asked) this.#lists.delete(path);
      }) as Promise<NamedEntry[]>;
      this.#lists.set(path, asked);
      return asked;
    };
    const before = this.#lists.get(path);
    if (!before) return ask();
    const after = before.then(ask, ask);
    this.#nextLists.set(path, after);
    return after;
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
      const timer = setTimeout(() => this.#done({ answer: call.call, errno: 'EIO' }), callMs(op) + ANSWER_MS);
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
    const certain = !pending.repeated || READING.has(pending.call.op);
    if (errno === undefined) pending.resolve(result);
    // Of what was asked twice it is not known whether the first time did it.
    else pending.reject(new TreeError(isErrno(errno) && certain ? errno : 'EIO'));
  }
}
