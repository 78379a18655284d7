import { createHash, hash as hashOnce } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ZipFile } from 'yazl';

/** A file of a zip. */
export interface PackedFile {
  name: string;
  mode: number;
  /** Before compression. */
  bytes: number;
  /** Of its content. */
  sha256: string;
}

export interface ZipContent {
  /** Of names, modes and contents: the same files give the same hash on every machine, whatever their dates. */
  sha256: string;
  files: number;
  /** Of the files, before compression. */
  unpackedBytes: number;
}

/** Files that are read at once to be hashed. */
const AT_ONCE = 16;
/** The fastest of zlib: whoever deploys waits for it, and the zip seldom goes far. */
const COMPRESSION = 1;
/** What a Python compiled for itself: another one would pass over it. */
const COMPILED = '__pycache__';

/**
 * Writes all files below `folders`, but for compiled Python, into a zip at `path`, in sorted order and without dates. Of two with one name that
 * of the first folder counts.
 */
export async function writeZip(folders: string[], path: string, signal: AbortSignal): Promise<PackedFile[]> {
  const zip = new ZipFile();
  const found = new Map<string, string>();
  for (const folder of folders.toReversed()) for (const name of await filesBelow(folder)) found.set(name, folder);
  const packed: PackedFile[] = [];
  const sorted = [...found].sort(([one], [other]) => (one < other ? -1 : 1));
  for (let at = 0; at < sorted.length; at += AT_ONCE) {
    signal.throwIfAborted();
    const some = sorted.slice(at, at + AT_ONCE).map(([name, folder]) => fingerprint(name, join(folder, name)));
    for (const { source, ...file } of await Promise.all(some)) {
      packed.push(file);
      // A local noon, which exists in every zone, and the old date field: with the newer one, the zone would be in the file.
      const date = { mtime: new Date(2000, 5, 1, 12), forceDosTimestamp: true };
      zip.addFile(source, file.name, { ...date, mode: file.mode, compressionLevel: COMPRESSION });
    }
  }
  zip.end();
  await pipeline(zip.outputStream, createWriteStream(path, { mode: 0o600 }), { signal });
  return packed;
}

/** What a zip of these files holds, in whatever order it has them. */
export function contentOf(files: readonly PackedFile[]): ZipContent {
  const hash = createHash('sha256');
  let unpackedBytes = 0;
  for (const { name, mode, bytes, sha256 } of files.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
    hash.update(`${name}\0${mode}\0${sha256}\n`);
    unpackedBytes += bytes;
  }
  return { sha256: hash.digest('hex'), files: files.length, unpackedBytes };
}

async function fingerprint(name: string, source: string): Promise<PackedFile & { source: string }> {
  const { mode, size } = await stat(source);
  const contents = await readFile(source);
  return {
    ...{ name, source, bytes: size },
    mode: mode & 0o111 ? 0o100755 : 0o100644,
    sha256: hashOnce('sha256', contents),
  };
}

async function filesBelow(folder: string): Promise<string[]> {
  const found: string[] = [];
  const walk = async (below: string): Promise<void> => {
    for (const entry of await readdir(join(folder, below), { withFileTypes: true })) {
      const path = below ? `${below}/${entry.name}` : entry.name;
      if (entry.isDirectory() && entry.name !== COMPILED) await walk(path);
      else if (entry.isFile()) found.push(path);
    }
  };
  await walk('');
  return found;
}
