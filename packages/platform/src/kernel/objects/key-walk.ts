import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { orMissing } from '../system-error.ts';
import { readName } from './key-path.ts';

/** Which keys are wanted. */
export interface Seek {
  prefix: Buffer;
  /** Only keys after this one. */
  after?: Buffer;
  /** Only keys after all that begin with this. */
  past?: Buffer;
}

export interface FoundKey {
  key: Buffer;
  path: string;
}

interface Entry extends FoundKey {
  kind: 'object' | 'directory';
}

/** Directories read in the course of one listing, so that each is read and sorted once. */
export type WalkCache = Map<string, Entry[]>;

/** Yields the wanted keys below `root` in the order of their bytes, reading no directory that cannot hold one. */
export async function* walkKeys(root: string, seek: Seek, cache: WalkCache): AsyncGenerator<FoundKey> {
  yield* walk(root, Buffer.alloc(0), seek, cache);
}

async function* walk(directory: string, base: Buffer, seek: Seek, cache: WalkCache): AsyncGenerator<FoundKey> {
  for (const entry of await entriesOf(directory, base, cache)) {
    if (entry.kind === 'object') {
      if (isWanted(entry.key, seek)) yield entry;
    } else if (mayHoldWanted(entry.key, seek)) {
      yield* walk(entry.path, entry.key, seek, cache);
    }
  }
}

async function entriesOf(directory: string, base: Buffer, cache: WalkCache): Promise<Entry[]> {
  const known = cache.get(directory);
  if (known) return known;
  // A directory goes with its last object.
  const names = (await orMissing(readdir(directory))) ?? [];
  const entries = names.flatMap((name): Entry[] => {
    const read = readName(name);
    return read ? [{ kind: read.kind, key: Buffer.concat([base, read.bytes]), path: join(directory, name) }] : [];
  });
  // Of equal bytes the object comes first: the keys below the directory are longer.
  entries.sort((a, b) => Buffer.compare(a.key, b.key) || (a.kind === 'object' ? -1 : 1));
  cache.set(directory, entries);
  return entries;
}

function isWanted(key: Buffer, { prefix, after, past }: Seek): boolean {
  if (!startsWith(key, prefix)) return false;
  if (after && Buffer.compare(key, after) <= 0) return false;
  return !past || (Buffer.compare(key, past) > 0 && !startsWith(key, past));
}

/** Whether any key that begins with `start` may be wanted. */
function mayHoldWanted(start: Buffer, { prefix, after, past }: Seek): boolean {
  if (!startsWith(start, prefix) && !startsWith(prefix, start)) return false;
  if (after && Buffer.compare(start, after) < 0 && !startsWith(after, start)) return false;
  if (!past) return true;
  return !startsWith(start, past) && (Buffer.compare(start, past) > 0 || startsWith(past, start));
}

export function startsWith(bytes: Buffer, prefix: Buffer): boolean {
  return bytes.length >= prefix.length && bytes.subarray(0, prefix.length).equals(prefix);
}
