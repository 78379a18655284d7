import { createHash, hash as hashOnce } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ZipFile } from 'yazl';

export interface WrittenZip {
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

/** Writes all files below `folders` into a zip at `path`, in sorted order and without dates. Of two with one name that of the first folder counts. */
export async function writeZip(folders: string[], path: string, signal: AbortSignal): Promise<WrittenZip> {
  const zip = new ZipFile();
  const hash = createHash('sha256');
  const files = new Map<string, string>();
  for (const folder of folders.toReversed()) for (const name of await filesBelow(folder)) files.set(name, folder);
  let unpackedBytes = 0;
  const sorted = [...files].sort(([one], [other]) => (one < other ? -1 : 1));
  for (let at = 0; at < sorted.length; at += AT_ONCE) {
    signal.throwIfAborted();
    const some = sorted.slice(at, at + AT_ONCE).map(([name, folder]) => fingerprint(name, join(folder, name)));
    for (const { name, source, mode, bytes, sha256 } of await Promise.all(some)) {
      hash.update(`${name}\0${mode}\0${sha256}\n`);
      unpackedBytes += bytes;
      // A local noon, which exists in every zone, and the old date field: with the newer one, the zone would be in the file.
      const date = { mtime: new Date(2000, 5, 1, 12), forceDosTimestamp: true };
      zip.addFile(source, name, { ...date, mode, compressionLevel: COMPRESSION });
    }
  }
  zip.end();
  await pipeline(zip.outputStream, createWriteStream(path, { mode: 0o600 }), { signal });
  return { sha256: hash.digest('hex'), files: files.size, unpackedBytes };
}

async function fingerprint(name: string, source: string) {
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
      if (entry.isDirectory()) await walk(path);
      else if (entry.isFile()) found.push(path);
    }
  };
  await walk('');
  return found;
}
