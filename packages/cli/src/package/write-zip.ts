import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
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

/** Writes all files below `folders` into a zip at `path`, in sorted order and without dates. Of two with one name that of the first folder counts. */
export async function writeZip(folders: string[], path: string, signal: AbortSignal): Promise<WrittenZip> {
  const zip = new ZipFile();
  const hash = createHash('sha256');
  const files = new Map<string, string>();
  for (const folder of folders.toReversed()) for (const name of await filesBelow(folder)) files.set(name, folder);
  let unpackedBytes = 0;
  for (const [name, folder] of [...files].sort(([one], [other]) => (one < other ? -1 : 1))) {
    signal.throwIfAborted();
    const source = join(folder, name);
    const info = await stat(source);
    const mode = info.mode & 0o111 ? 0o100755 : 0o100644;
    const contents = createHash('sha256');
    await pipeline(createReadStream(source), contents, { signal });
    hash.update(`${name}\0${mode}\0${contents.digest('hex')}\n`);
    unpackedBytes += info.size;
    // A local noon, which exists in every zone, and the old date field: with the newer one, the zone would be in the file.
    zip.addFile(source, name, { mtime: new Date(2000, 5, 1, 12), mode, forceDosTimestamp: true });
  }
  zip.end();
  await pipeline(zip.outputStream, createWriteStream(path, { mode: 0o600 }), { signal });
  return { sha256: hash.digest('hex'), files: files.size, unpackedBytes };
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
