import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { addAbortSignal } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { eachAtOnce } from '../../each-at-once.ts';
import { isObjectKey, type ObjectInfo, type ObjectPlace, type ObjectStore } from '../../objects/index.ts';
import { Turns } from '../../turns.ts';
import { type Entry, type FileEntry, isName, type NamedEntry, parentOf, type Tree, TreeError } from './tree.ts';
import { treeErrorOf } from './tree-error-of.ts';

export interface ObjectTreeOptions {
  store: ObjectStore;
  bucket: string;
  /** Without slash at either end; empty for the whole bucket. */
  prefix: string;
  /** Where contents are handed over. */
  directory: string;
  /** Largest file that is fetched. */
  maxFileBytes: number;
  /** Told what went wrong in the store behind an EIO. */
  onFailure(error: unknown): void;
}

const PAGE = 1000;
const MAX_NAMES = 100_000;
const MAX_MOVED = 10_000;
const MOVED_AT_ONCE = 8;

/**
 * The objects below a prefix as files and directories. `a/b` is the object `prefix/a/b`; a directory is whatever has objects below it, or
 * an empty object whose key ends in `/`. No path leads out of the prefix: a key is always the prefix and names.
 */
export class ObjectTree implements Tree {
  readonly #options: ObjectTreeOptions;
  readonly #root: string;
  /** Contents on their way, by path: of two for one file the later one stays. */
  readonly #stores = new Turns();

  constructor(options: ObjectTreeOptions) {
    this.#options = options;
    this.#root = options.prefix === '' ? '' : `${options.prefix}/`;
  }

  stat(path: string): Promise<Entry> {
    return this.#mapped(() => this.#stat(path));
  }

  list(path: string, signal?: AbortSignal): Promise<NamedEntry[]> {
    return this.#mapped(async () => {
      const prefix = this.#below(path);
      const found = new Map<string, NamedEntry>();
      let seen = path === '';
      for await (const page of this.#pages(prefix, '/')) {
        signal?.throwIfAborted();
        seen ||= page.objects.length + page.commonPrefixes.length > 0;
        for (const shown of page.commonPrefixes) {
          const name = shown.slice(prefix.length, -1);
          if (isName(name) && !found.has(name)) found.set(name, { name, kind: 'directory' });
        }
        for (const { key } of page.objects) {
          const name = key.slice(prefix.length);
          if (isName(name)) found.set(name, { name, kind: 'file' });
        }
        if (found.size > MAX_NAMES) throw new TreeError('EOVERFLOW');
      }
      if (!seen) throw new TreeError('ENOENT');
      return [...found.values()];
    });
  }

  fetch(path: string, local: string, maxBytes: number, signal?: AbortSignal): Promise<FileEntry> {
    return this.#mapped(async () => {
      const target = this.#local(local);
      const { info, body } = await this.#options.store.get(this.#place(path));
      if (info.size > Math.min(maxBytes, this.#options.maxFileBytes)) {
        body.destroy();
        throw new TreeError('EFBIG');
      }
      try {
        await pipeline(body, createWriteStream(target, { mode: 0o600 }), { signal });
      } catch (error) {
        await rm(target, { force: true });
        throw error;
      }
      return fileOf(info);
    });
  }

  store(path: string, local: string, signal?: AbortSignal): Promise<FileEntry> {
    return this.#mapped(async () => {
      const place = this.#place(path);
      const content = contentOf(this.#local(local), signal);
      return fileOf(await this.#stores.take(path, () => this.#options.store.put(place, content)));
    });
  }

  create(path: string): Promise<FileEntry> {
    return this.#mapped(async () =>
      fileOf(await this.#options.store.put(this.#place(path), nothing(), { onlyIfAbsent: true })),
    );
  }

  mkdir(path: string): Promise<null> {
    return this.#mapped(async () => {
      if (await this.#find(path)) throw new TreeError('EEXIST');
      await this.#options.store.put(this.#marker(path), nothing(), { onlyIfAbsent: true });
      return null;
    });
  }

  rmdir(path: string): Promise<null> {
    return this.#mapped(async () => {
      this.#place(path);
      if (!(await this.#isEmpty(path))) throw new TreeError('ENOTEMPTY');
      await this.#keepParent(path);
      await this.#options.store.delete(this.#marker(path));
      return null;
    });
  }

  unlink(path: string): Promise<null> {
    return this.#mapped(async () => {
      const place = this.#place(path);
      await this.#stores.settled(path);
      await this.#keepParent(path);
      await this.#options.store.delete(place);
      return null;
    });
  }

  rename(path: string, to: string, replace: boolean, signal?: AbortSignal): Promise<null> {
    return this.#mapped(async () => {
      for (const one of [path, to]) this.#place(one);
      if (path === to) return null;
      if (to.startsWith(`${path}/`)) throw new TreeError('EINVAL');
      const [from, there] = await Promise.all([this.#stat(path), this.#find(to)]);
      if (there && !replace) throw new TreeError('EEXIST');
      if (there && from.kind === 'file' && there.kind === 'directory') throw new TreeError('EISDIR');
      if (there && from.kind === 'directory' && there.kind === 'file') throw new TreeError('ENOTDIR');
      if (from.kind === 'directory') await this.#moveDirectory(path, to, there !== undefined, signal);
      else await this.#moveFile(path, to, signal);
      return null;
    });
  }

  /** Copies the whole file before it removes the old name: after an interruption the file has at least one of the two names. */
  async #moveFile(path: string, to: string, signal?: AbortSignal): Promise<void> {
    await Promise.all([this.#stores.settled(path), this.#stores.settled(to)]);
    await this.#copy(this.#place(path), this.#place(to), signal);
    await this.#keepParent(path);
    signal?.throwIfAborted();
    await this.#options.store.delete(this.#place(path));
  }

  async #moveDirectory(path: string, to: string, exists: boolean, signal?: AbortSignal): Promise<void> {
    if (exists && !(await this.#isEmpty(to))) throw new TreeError('ENOTEMPTY');
    const { bucket } = this.#options;
    const [from, target] = [this.#below(path), this.#below(to)];
    const keys: string[] = [];
    for await (const page of this.#pages(from)) {
      keys.push(...page.objects.map(({ key }) => key));
      // mv(1) then copies file by file.
      if (keys.length > MAX_MOVED) throw new TreeError('EXDEV');
    }
    const targetOf = (key: string): ObjectPlace => ({ bucket, key: target + key.slice(from.length) });
    await eachAtOnce(MOVED_AT_ONCE, keys, signal, (key) => this.#copy({ bucket, key }, targetOf(key), signal));
    await this.#keepParent(path);
    await eachAtOnce(MOVED_AT_ONCE, keys, signal, (key) => this.#options.store.delete({ bucket, key }));
  }

  async #copy(from: ObjectPlace, to: ObjectPlace, signal?: AbortSignal): Promise<void> {
    if (!isObjectKey(to.key)) throw new TreeError('ENAMETOOLONG');
    const { info, body } = await this.#options.store.get(from);
    if (signal) addAbortSignal(signal, body);
    const { contentType, headers, metadata, checksum } = info;
    try {
      await this.#options.store.put(to, body, { contentType, headers, metadata, checksum: () => checksum });
    } finally {
      body.destroy();
    }
  }

  async #stat(path: string): Promise<Entry> {
    const found = await this.#find(path);
    if (!found) throw new TreeError('ENOENT');
    return found;
  }

  async #find(path: string): Promise<Entry | undefined> {
    if (path === '') return { kind: 'directory' };
    const { store, bucket } = this.#options;
    const [file, below] = await Promise.all([
      store.head(this.#place(path)),
      store.list(bucket, { prefix: this.#below(path), limit: 1 }),
    ]);
    if (file) return fileOf(file);
    return below.objects.length > 0 ? { kind: 'directory' } : undefined;
  }

  /** Throws ENOENT for a directory that is not there. */
  async #isEmpty(path: string): Promise<boolean> {
    const { store, bucket } = this.#options;
    const { objects } = await store.list(bucket, { prefix: this.#below(path), limit: 2 });
    if (objects.length === 0) throw new TreeError('ENOENT');
    return objects.every(({ key }) => key === this.#below(path));
  }

  /** A directory does not go with the last thing in it, which in an object store it does. */
  async #keepParent(path: string): Promise<void> {
    const parent = parentOf(path);
    if (parent === '') return;
    const { store, bucket } = this.#options;
    const marker = this.#marker(parent);
    // In the order of keys the marker comes first.
    const { objects } = await store.list(bucket, { prefix: marker.key, limit: 2 });
    if (objects.length > 1 || objects[0]?.key === marker.key) return;
    await store.put(marker, nothing());
  }

  async *#pages(prefix: string, delimiter?: string) {
    const { store, bucket } = this.#options;
    let token: string | undefined;
    do {
      const page = await store.list(bucket, { prefix, limit: PAGE, delimiter, token });
      yield page;
      token = page.next;
    } while (token !== undefined);
  }

  #place(path: string): ObjectPlace {
    const key = this.#root + path;
    if (path === '' || !path.split('/').every(isName)) throw new TreeError('EINVAL');
    if (!isObjectKey(key)) throw new TreeError(key.isWellFormed() ? 'ENAMETOOLONG' : 'EILSEQ');
    return { bucket: this.#options.bucket, key };
  }

  #marker(path: string): ObjectPlace {
    return { ...this.#place(path), key: this.#below(path) };
  }

  #below(path: string): string {
    return path === '' ? this.#root : `${this.#place(path).key}/`;
  }

  #local(name: string): string {
    if (!/^\d+$/.test(name)) throw new TreeError('EINVAL');
    return join(this.#options.directory, name);
  }

  async #mapped<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const known = treeErrorOf(error);
      if (known.errno === 'EIO') this.#options.onFailure(error);
      throw known;
    }
  }
}

function fileOf({ size, lastModified }: Pick<ObjectInfo, 'size' | 'lastModified'>): FileEntry {
  return { kind: 'file', size, modifiedAt: lastModified.getTime() };
}

/** Opened when it is first read, so that a store which refuses beforehand leaves nothing open. */
async function* contentOf(path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path, { highWaterMark: 1 << 20, signal });
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
