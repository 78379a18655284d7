import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { lstat, readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { type Header, type Pack, pack } from 'tar-stream';
import type { Descriptor } from '../manifest.ts';
import { MEDIA } from '../media-types.ts';
import type { BlobStore } from '../store/blob-store.ts';
import type { Ownership } from '../trees/tree.ts';

/** One thing in a layer; `path` is relative to the root of the image, without a leading slash. */
export type LayerEntry =
  | ({ type: 'directory'; path: string; mode: number } & Ownership)
  | ({ type: 'symlink'; path: string; target: string } & Ownership)
  | ({ type: 'file'; path: string; mode: number; size: number; open: () => AsyncIterable<Uint8Array> } & Ownership);

/** Uid and gid of `agent`, who runs what the platform makes images of. */
export const AGENT: Ownership = { uid: 10001, gid: 10001 };
/** Of tar, bytes. */
const BLOCK = 512;
const ROOT: Ownership = { uid: 0, gid: 0 };
/** Most files are small: read at once, and written many at a time, a layer of thousands is made in half the time. */
const PIECE_BYTES = 1024 * 1024;

/** 1980-01-02: the same for every file, and late enough for zip files, which begin in 1980. */
const EVERY_MTIME = new Date(Date.UTC(1980, 0, 2));

/**
 * Writes a layer (plain tar) into the store. The bytes depend on the entries only: sorted by path, fixed times, parents
 * that no entry names made as root's, mode 0755. Two entries of one path are a programming error and throw.
 */
export async function writeLayer(
  blobs: BlobStore,
  entries: readonly LayerEntry[],
  signal?: AbortSignal,
): Promise<Descriptor> {
  const packer = pack();
  let unreadable: unknown;
  const filled = fill(packer, complete(entries)).catch((error: unknown) => {
    unreadable = error;
    packer.destroy();
  });
  const info = await blobs.put(
    bytesOf(packer, () => unreadable),
    { maxBytes: Number.MAX_SAFE_INTEGER, signal },
  );
  await filled;
  return { mediaType: MEDIA.ociLayerTar, ...info };
}

/** What a layer of these entries takes at most, but for what names need that are too long for a header of tar. */
export function layerBytes(entries: readonly LayerEntry[]): number {
  const padded = (bytes: number): number => Math.ceil(bytes / BLOCK) * BLOCK;
  // Two blocks end it.
  return entries.reduce((sum, entry) => sum + BLOCK + (entry.type === 'file' ? padded(entry.size) : 0), 2 * BLOCK);
}

/** A file of the layer whose content is at hand. */
export function textFile(
  path: string,
  content: string | Uint8Array,
  owner: Ownership = ROOT,
  mode = 0o644,
): LayerEntry {
  const bytes = Buffer.from(content);
  return { type: 'file', path, mode, ...owner, size: bytes.length, open: () => whole(bytes) };
}

export function hostFile(
  path: string,
  source: string,
  size: number,
  owner: Ownership = ROOT,
  mode = 0o644,
): LayerEntry {
  return {
    type: 'file',
    path,
    mode,
    ...owner,
    size,
    open: () => (size <= PIECE_BYTES ? wholeFile(source) : createReadStream(source, { highWaterMark: PIECE_BYTES })),
  };
}

/**
 * Entries for all files below the directory `dir`, placed below `target` in the image. Of modes only the executable bit is
 * taken, of links their text; sockets and devices are left out. `include` gets paths relative to `dir`.
 */
export async function directoryEntries(
  dir: string,
  options: { target: string; owner?: Ownership; include?: (path: string) => boolean },
): Promise<LayerEntry[]> {
  const owner = options.owner ?? AGENT;
  const target = options.target.split('/').filter(Boolean).join('/');
  const entries: LayerEntry[] = target === '' ? [] : [{ type: 'directory', path: target, mode: 0o755, ...owner }];
  const visit = async (relative: string): Promise<void> => {
    for (const name of await readdir(join(dir, relative))) {
      const inner = relative === '' ? name : `${relative}/${name}`;
      if (options.include && !options.include(inner)) continue;
      const source = join(dir, inner);
      const path = target === '' ? inner : `${target}/${inner}`;
      const info = await lstat(source);
      if (info.isDirectory()) {
        entries.push({ type: 'directory', path, mode: 0o755, ...owner });
        await visit(inner);
      } else if (info.isSymbolicLink())
        entries.push({ type: 'symlink', path, target: await readlink(source), ...owner });
      else if (info.isFile()) entries.push(hostFile(path, source, info.size, owner, info.mode & 0o111 ? 0o755 : 0o644));
    }
  };
  await visit('');
  return entries;
}

function complete(entries: readonly LayerEntry[]): LayerEntry[] {
  const all = new Map<string, LayerEntry>();
  for (const entry of entries) {
    if (all.has(entry.path)) throw new Error(`two entries of one layer are called ${entry.path}`);
    all.set(entry.path, entry);
  }
  for (const { path } of entries) {
    for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
      const parent = path.slice(0, slash);
      if (all.has(parent)) break;
      all.set(parent, { type: 'directory', path: parent, mode: 0o755, ...ROOT });
    }
  }
  return [...all.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

async function fill(packer: Pack, entries: readonly LayerEntry[]): Promise<void> {
  for (const entry of entries) {
    const written = Promise.withResolvers<void>();
    const done = (error?: Error | null): void => (error ? written.reject(error) : written.resolve());
    const sink = packer.entry(headerOf(entry), done);
    // It tells its error twice: to the callback, and as an event that must not go unheard.
    sink.on('error', written.reject);
    written.promise.catch(() => undefined);
    if (entry.type === 'file') {
      // By hand: Node's pipeline never settles when such a source fails and its sink is of tar-stream.
      for await (const chunk of entry.open())
        if (!sink.write(chunk)) await Promise.race([once(sink, 'drain'), written.promise]);
      sink.end(undefined);
    }
    await written.promise;
  }
  packer.finalize();
}

function headerOf(entry: LayerEntry): Partial<Header> & { name: string } {
  const header = { uid: entry.uid, gid: entry.gid, mtime: EVERY_MTIME, type: entry.type };
  if (entry.type === 'symlink') return { ...header, name: entry.path, mode: 0o777, linkname: entry.target };
  if (entry.type === 'directory') return { ...header, name: `${entry.path}/`, mode: entry.mode };
  return { ...header, name: entry.path, mode: entry.mode, size: entry.size };
}

/** What was packed, in pieces of about a megabyte; throws what `failure` gives where the packing ended early. */
async function* bytesOf(packer: Pack, failure: () => unknown): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of packer) {
      if (!(chunk instanceof Uint8Array)) continue;
      held.push(chunk);
      bytes += chunk.length;
      if (bytes < PIECE_BYTES) continue;
      yield Buffer.concat(held);
      held = [];
      bytes = 0;
    }
  } catch (error) {
    throw failure() ?? error;
  }
  yield Buffer.concat(held);
}

async function* wholeFile(path: string): AsyncGenerator<Uint8Array> {
  yield await readFile(path);
}

async function* whole(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
