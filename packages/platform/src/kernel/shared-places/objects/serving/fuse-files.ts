import { constants } from 'node:os';
import { type Entry, type FileEntry, type NamedEntry, type Tree, TreeError } from '../tree.ts';
import {
  type Attributes,
  attributesBody,
  directoryBody,
  entryBody,
  type FuseRequest,
  initBody,
  OP,
  openBody,
  ROOT_ID,
  reply,
  S_IFMT,
  S_IFREG,
  statfsBody,
  writtenBody,
} from './fuse-wire.ts';
import { Gate } from './gate.ts';
import { type FileNode, Nodes } from './nodes.ts';
import { OpenContent, Room } from './open-content.ts';

export interface FuseFilesDeps {
  tree: Tree;
  /** Answers the kernel; false when nobody waits for it any more. */
  answer(message: Buffer): boolean;
  /** For the contents of open files. */
  directory: string;
  /** What those may take together, in bytes. */
  roomBytes: number;
  now(): number;
  /** Told what nobody else is: that something written could not be stored, or that this program is wrong. */
  note(text: string): void;
}

const FATTR_SIZE = 1 << 3;
const RENAME_NOREPLACE = 1;
const O_ACCMODE = 3;
const O_EXCL = 0o200;
const O_APPEND = 0o2000;
/** Of a WRITE: pages that were written through a mapping, each at its own place. */
const WRITE_CACHE = 1;

type Handler = (request: FuseRequest) => Promise<Buffer> | Buffer;
interface Handle {
  node: FileNode;
  /** Whether it may be written through. */
  writes: boolean;
  /** Of a directory that is being read. */
  names: NamedEntry[] | undefined;
}

/** A file system over a tree of objects: what the kernel asks for on behalf of programs, which wait until it is answered. */
export class FuseFiles {
  readonly #deps: FuseFilesDeps;
  readonly #nodes = new Nodes();
  readonly #room: Room;
  /** Directories move alone, for the paths of all that is below them change. */
  readonly #paths = new Gate();
  readonly #handles = new Map<number, Handle>();
  readonly #waiting = new Map<bigint, () => void>();
  #lastHandle = 0;
  #lastLocal = 0;

  constructor(deps: FuseFilesDeps) {
    this.#deps = deps;
    this.#room = new Room(deps.roomBytes);
  }

  /** Takes a request and answers it, at once or later. What it keeps of the request it copies before it returns. */
  take(request: FuseRequest): void {
    const { op, unique } = request;
    const silent = this.#silent[op];
    const handler = this.#handlers[op];
    try {
      if (silent) silent(request);
      else if (handler) this.#answer(request, handler(request));
      else this.#fail(unique, new TreeError('ENOSYS'));
    } catch (error) {
      this.#fail(unique, error);
    }
  }

  /** Stores what is still to be stored, as after the end of programs that closed nothing. */
  async settle(): Promise<void> {
    await Promise.allSettled([...this.#nodes.open()].map((content) => this.#flush(content)));
  }

  /** Requests that nobody waits for. */
  readonly #silent: Partial<Record<number, (request: FuseRequest) => void>> = {
    [OP.FORGET]: (request) => this.#nodes.forget(request.node, request.u64(0)),
    [OP.BATCH_FORGET]: (request) => {
      const count = request.u32(0);
      for (let i = 0; i < count; i += 1) this.#nodes.forget(request.u64(8 + 16 * i), request.u64(16 + 16 * i));
    },
    [OP.INTERRUPT]: (request) => this.#waiting.get(request.body.readBigUInt64LE(0))?.(),
  };

  readonly #handlers: Partial<Record<number, Handler>> = {
    [OP.INIT]: initBody,
    [OP.DESTROY]: () => Buffer.alloc(0),
    [OP.STATFS]: () => statfsBody(),
    [OP.LOOKUP]: (request) => {
      const [parent, name] = [this.#node(request.node), nameIn(request, 0)];
      return this.#paths.shared(async () =>
        this.#told(parent, name, await this.#deps.tree.stat(this.#below(parent, name))),
      );
    },
    [OP.GETATTR]: (request) => this.#attributes(this.#node(request.node)),
    [OP.SETATTR]: (request) => this.#setAttributes(this.#node(request.node), request.u32(0), request.u64(16)),
    [OP.MKNOD]: (request) => {
      if ((request.u32(0) & S_IFMT) !== S_IFREG) throw new TreeError('EPERM');
      const [parent, name] = [this.#node(request.node), nameIn(request, 16)];
      return this.#paths.shared(async () =>
        this.#new(parent, name, await this.#deps.tree.create(this.#below(parent, name))),
      );
    },
    [OP.CREATE]: (request) => this.#create(this.#node(request.node), nameIn(request, 16), request.u32(0)),
    [OP.MKDIR]: (request) => {
      const [parent, name] = [this.#node(request.node), nameIn(request, 8)];
      return this.#paths.shared(async () => {
        await this.#deps.tree.mkdir(this.#below(parent, name));
        return this.#told(parent, name, { kind: 'directory' });
      });
    },
    [OP.SYMLINK]: notHere,
    [OP.LINK]: notHere,
    [OP.UNLINK]: (request) => this.#unlink(this.#node(request.node), nameIn(request, 0)),
    [OP.RMDIR]: (request) => {
      const [parent, name] = [this.#node(request.node), nameIn(request, 0)];
      return this.#paths.shared(async () => {
        await this.#deps.tree.rmdir(this.#below(parent, name));
        this.#removed(parent, name);
        return Buffer.alloc(0);
      });
    },
    [OP.RENAME]: (request) => this.#rename(request, 8, 0),
    [OP.RENAME2]: (request) => this.#rename(request, 16, request.u32(8)),
    [OP.OPEN]: (request) => openBody(this.#open(this.#node(request.node), request.u32(0))),
    [OP.READ]: (request) => {
      const content = this.#content(request);
      const [offset, size] = [request.u64(8), request.u32(16)];
      if (content.loaded) return content.read(offset, size);
      return this.#load(content).then(() => content.read(offset, size));
    },
    [OP.WRITE]: (request) => {
      const content = this.#content(request);
      const appends = (request.u32(32) & O_APPEND) !== 0 && (request.u32(20) & WRITE_CACHE) === 0;
      // The end of the file is known here best: the kernel's may be a second old.
      const offset = appends ? 'end' : request.u64(8);
      const data = request.body.subarray(40, 40 + request.u32(16));
      if (content.loaded) {
        content.write(offset, data);
        return writtenBody(data.length);
      }
      const kept = Buffer.from(data);
      return this.#load(content).then(() => {
        content.write(offset, kept);
        return writtenBody(kept.length);
      });
    },
    [OP.FLUSH]: (request) => this.#flushed(request),
    [OP.FSYNC]: (request) => this.#flushed(request),
    [OP.FSYNCDIR]: () => Buffer.alloc(0),
    [OP.RELEASE]: (request) => this.#release(request.u64(0)).then(() => Buffer.alloc(0)),
    [OP.OPENDIR]: (request) => openBody(this.#handle(this.#node(request.node))),
    [OP.READDIR]: (request) => this.#readDirectory(request.u64(0), request.u64(8), request.u32(16)),
    [OP.RELEASEDIR]: (request) => {
      this.#handles.delete(request.u64(0));
      return Buffer.alloc(0);
    },
  };

  #answer(request: FuseRequest, done: Promise<Buffer> | Buffer): void {
    if (done instanceof Promise) this.#answerLater(request, done);
    else this.#deps.answer(reply(request.unique, 0, done));
  }

  /** Reading may be given up; what changes something goes on to its end, for half of it is done. */
  #answerLater({ op, unique }: FuseRequest, done: Promise<Buffer>): void {
    const mayGiveUp = op === OP.LOOKUP || op === OP.GETATTR || op === OP.READ || op === OP.READDIR;
    let answered = false;
    if (mayGiveUp) {
      this.#waiting.set(unique, () => {
        if (answered) return;
        answered = true;
        this.#fail(unique, new TreeError('EINTR'));
      });
    }
    done
      .then(
        (body) => {
          if (!answered && this.#deps.answer(reply(unique, 0, body))) return;
          // The kernel never heard of it.
          if (op === OP.LOOKUP && body.length > 0) this.#nodes.forget(Number(body.readBigUInt64LE(0)), 1);
        },
        (error: unknown) => {
          if (!answered) this.#fail(unique, error);
        },
      )
      .finally(() => {
        answered = true;
        this.#waiting.delete(unique);
      });
  }

  #fail(unique: bigint, error: unknown): void {
    const known = error instanceof TreeError ? error : undefined;
    if (!known) this.#deps.note(error instanceof Error ? (error.stack ?? error.message) : String(error));
    this.#deps.answer(reply(unique, constants.errno[known?.errno ?? 'EIO']));
  }

  #node(id: number): FileNode {
    const found = this.#nodes.get(id);
    if (!found) throw new TreeError('ESTALE');
    return found;
  }

  #below(parent: FileNode, name: string): string {
    const path = this.#nodes.path(parent);
    if (path === undefined) throw new TreeError('ENOENT');
    return path === '' ? name : `${path}/${name}`;
  }

  /** An answer that tells the kernel of a name. */
  #told(parent: FileNode, name: string, entry: Entry): Buffer {
    const node = this.#nodes.at(parent, name, entry.kind);
    node.known += 1;
    return entryBody(about(node, entry));
  }

  /** The same for a file that was just made. What somebody has open under that name was removed behind our back. */
  #new(parent: FileNode, name: string, entry: Entry): Buffer {
    this.#removed(parent, name);
    return this.#told(parent, name, entry);
  }

  async #attributes(node: FileNode): Promise<Buffer> {
    const { content } = node;
    if (content?.entry) return attributesBody(about(node, content.entry));
    // Asked whenever a sandbox is made, by the platform itself.
    if (node.id === ROOT_ID) return attributesBody(about(node, { kind: 'directory' }));
    return this.#paths.shared(async () => {
      const path = this.#nodes.path(node);
      // Removed, and somebody stands in it or has it open.
      if (path === undefined && node.kind === 'file') throw new TreeError('ENOENT');
      const entry: Entry = path === undefined ? { kind: 'directory' } : await this.#deps.tree.stat(path);
      if (entry.kind !== node.kind) throw new TreeError('ESTALE');
      return attributesBody(about(node, entry));
    });
  }

  /** The size can be set. Owner, mode and times are those of all files here, and to set them changes nothing. */
  async #setAttributes(node: FileNode, valid: number, size: number): Promise<Buffer> {
    if ((valid & FATTR_SIZE) === 0) return this.#attributes(node);
    if (node.kind !== 'file') throw new TreeError('EISDIR');
    const content = this.#hold(node);
    const alone = content.opens === 1;
    try {
      await this.#paths.shared(() => content.truncate(size));
      // Of an open file it is stored with what is written next, when it is closed.
      if (alone) await this.#flush(content);
      return content.entry ? attributesBody(about(node, content.entry)) : await this.#attributes(node);
    } finally {
      this.#letGo(node, content);
    }
  }

  async #create(parent: FileNode, name: string, flags: number): Promise<Buffer> {
    const { tree, now } = this.#deps;
    return this.#paths.shared(async () => {
      const path = this.#below(parent, name);
      let entry: Entry;
      try {
        // There from the beginning, so that of two who create it one loses, wherever they are.
        entry = await tree.create(path);
      } catch (error) {
        if ((flags & O_EXCL) !== 0 || !(error instanceof TreeError) || error.errno !== 'EEXIST') throw error;
        entry = await tree.stat(path);
        if (entry.kind === 'directory') throw new TreeError('EISDIR');
        const told = this.#told(parent, name, entry);
        return Buffer.concat([told, openBody(this.#open(this.#nodes.at(parent, name, 'file'), flags))]);
      }
      const told = this.#new(parent, name, entry);
      const node = this.#nodes.at(parent, name, 'file');
      const handle = this.#open(node, flags);
      node.content?.begin(now());
      return Buffer.concat([told, openBody(handle)]);
    });
  }

  #unlink(parent: FileNode, name: string): Promise<Buffer> {
    const remove = async (): Promise<Buffer> => {
      await this.#deps.tree.unlink(this.#below(parent, name));
      this.#removed(parent, name);
      return Buffer.alloc(0);
    };
    return this.#holding([parent.children.get(name)], ([content]) =>
      this.#paths.shared(async () => {
        if (!content) return remove();
        // Who has it open keeps its content.
        if (content.opens > 0) await content.load();
        return content.exclusively(remove);
      }),
    );
  }

  #removed(parent: FileNode, name: string): void {
    const node = parent.children.get(name);
    if (!node) return;
    this.#nodes.remove(node);
    this.#nodes.drop(node);
  }

  #rename(request: FuseRequest, namesAt: number, flags: number): Promise<Buffer> {
    const [from, to] = request.names(namesAt);
    const [parent, target] = [this.#node(request.node), this.#node(request.u64(0))];
    if (from === undefined || to === undefined) throw new TreeError('EILSEQ');
    if ((flags & ~RENAME_NOREPLACE) !== 0) throw new TreeError('EINVAL');
    const moved = parent.children.get(from);
    const move = async (): Promise<Buffer> => {
      await this.#deps.tree.rename(this.#below(parent, from), this.#below(target, to), flags === 0);
      if (moved) this.#nodes.move(moved, target, to);
      return Buffer.alloc(0);
    };
    if (moved?.kind === 'file') return this.#moveFile(moved, target.children.get(to), move);
    return this.#paths.exclusive(async () => {
      // Under their old names: from there they are copied.
      if (moved) await Promise.all([...this.#nodes.openBelow(moved)].map((content) => content.flush()));
      return move();
    });
  }

  /** Neither of the two is stored meanwhile, also for who opens it meanwhile. Who has open what is replaced keeps its content. */
  #moveFile(moved: FileNode, there: FileNode | undefined, move: () => Promise<Buffer>): Promise<Buffer> {
    return this.#holding([moved, there === moved ? undefined : there], ([content, replaced]) =>
      this.#paths.shared(async () => {
        if (replaced && replaced.opens > 0) await replaced.load();
        await content?.flush();
        const alone = replaced ? () => replaced.exclusively(move) : move;
        return content ? content.exclusively(alone) : alone();
      }),
    );
  }

  #open(node: FileNode, flags: number): number {
    if (node.kind !== 'file') throw new TreeError('EISDIR');
    this.#hold(node);
    return this.#handle(node, (flags & O_ACCMODE) !== 0);
  }

  #handle(node: FileNode, writes = false): number {
    this.#lastHandle += 1;
    this.#handles.set(this.#lastHandle, { node, writes, names: undefined });
    return this.#lastHandle;
  }

  async #release(number: number): Promise<void> {
    const handle = this.#handles.get(number);
    this.#handles.delete(number);
    const content = handle?.node.content;
    if (!handle || !content) return;
    // Written through a mapping after close(2), perhaps, or by who was told that it failed and gave up.
    if (content.opens === 1 && content.dirty) {
      await this.#flush(content).catch((error: unknown) =>
        this.#deps.note(`${this.#nodes.path(handle.node)} could not be stored: ${error}`),
      );
    }
    this.#letGo(handle.node, content);
  }

  #hold(node: FileNode): OpenContent {
    node.content ??= this.#newContent(node);
    node.content.opens += 1;
    return node.content;
  }

  #letGo(node: FileNode, content: OpenContent): void {
    content.opens -= 1;
    this.#drop(node, content);
  }

  /** Work during which the contents of files stay the same ones, open or not. */
  async #holding<T>(
    nodes: readonly (FileNode | undefined)[],
    work: (contents: (OpenContent | undefined)[]) => Promise<T>,
  ): Promise<T> {
    const held = nodes.map((node) => {
      if (node?.kind !== 'file') return undefined;
      node.content ??= this.#newContent(node);
      node.content.holds += 1;
      return { node, content: node.content };
    });
    try {
      return await work(held.map((one) => one?.content));
    } finally {
      for (const one of held) {
        if (!one) continue;
        one.content.holds -= 1;
        this.#drop(one.node, one.content);
      }
    }
  }

  #drop(node: FileNode, content: OpenContent): void {
    if (content.opens + content.holds > 0) return;
    content.close();
    if (node.content === content) node.content = undefined;
    this.#nodes.drop(node);
  }

  #newContent(node: FileNode): OpenContent {
    const { tree, directory, now } = this.#deps;
    const path = (): string | undefined => this.#nodes.path(node);
    const newLocal = (): string => {
      this.#lastLocal += 1;
      return String(this.#lastLocal);
    };
    return new OpenContent({ tree, room: this.#room, directory, newLocal, path, now });
  }

  #content(request: FuseRequest): OpenContent {
    const content = this.#handles.get(request.u64(0))?.node.content;
    if (!content) throw new TreeError('EBADF');
    return content;
  }

  /** close(2) and fsync(2) return when what was written is in the object store. */
  async #flushed(request: FuseRequest): Promise<Buffer> {
    const handle = this.#handles.get(request.u64(0));
    if (handle?.writes && handle.node.content) await this.#flush(handle.node.content);
    return Buffer.alloc(0);
  }

  #load(content: OpenContent): Promise<void> {
    return this.#paths.shared(() => content.load());
  }

  #flush(content: OpenContent): Promise<void> {
    return this.#paths.shared(() => content.flush());
  }

  async #readDirectory(number: number, from: number, room: number): Promise<Buffer> {
    const handle = this.#handles.get(number);
    if (!handle) throw new TreeError('EBADF');
    // As it was when it began to be read; from its beginning it is read anew.
    if (from === 0 || !handle.names) {
      handle.names = await this.#paths.shared(async () => {
        const path = this.#nodes.path(handle.node);
        return path === undefined ? [] : this.#deps.tree.list(path);
      });
    }
    return directoryBody(handle.names, from, room);
  }
}

/** A link is no object. */
function notHere(): never {
  throw new TreeError('EPERM');
}

function nameIn(request: FuseRequest, offset: number): string {
  const [name] = request.names(offset);
  if (name === undefined) throw new TreeError('EILSEQ');
  return name;
}

function about(node: FileNode, entry: Entry): Attributes {
  const file: FileEntry | undefined = node.content?.entry ?? (entry.kind === 'file' ? entry : undefined);
  return { id: node.id, kind: node.kind, size: file?.size ?? 0, modifiedAt: file?.modifiedAt ?? 0 };
}
