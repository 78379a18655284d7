import { stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { crc32 } from 'node:zlib';
import { type Entry, openPromise, type ZipFile } from 'yauzl';
import { errorCode } from '../../system-error.ts';
import { trimEnd } from '../../trim-end.ts';
import { ImageError } from '../images.ts';
import { describeBytes } from '../limits.ts';

/** One thing in a zip that was found safe; `path` is relative, with single slashes. */
export type ZipItem =
  | { type: 'directory'; path: string }
  | { type: 'symlink'; path: string; target: string }
  | ({
      type: 'file';
      path: string;
      executable: boolean;
      size: number;
      open: () => AsyncIterable<Uint8Array>;
    } & PackedAs);

/** How a zip has a file. */
export interface PackedAs {
  crc32: number;
  method: number;
  packedSize: number;
  /** Where its local header begins. */
  offset: number;
}

export interface ZipLimits {
  zipBytes: number;
  zipUnpackedBytes: number;
  zipEntries: number;
}

const S_IFMT = 0o170000;
const S_IFLNK = 0o120000;
const S_IFDIR = 0o040000;
const S_IFREG = 0o100000;
const MADE_BY_UNIX = 3;
const LONGEST_TARGET = 4095;
/** Of what is said of a zip, which may repeat a name of it, in characters. */
const LONGEST_REASON = 500;
/** As deep as an image may be. */
const DEEPEST = 250;

/** An open zip. Its items can be read until it is disposed of. */
export interface Zip extends Disposable {
  /** Sorted by path. */
  items: ZipItem[];
}

/**
 * Opens a zip (zip64 too) and lists what it holds. Refuses with `ImageError`: names that lead out, links that lead out,
 * duplicates, encryption, unknown compression, special files, and more than `limits` allow. Content is read again at each
 * `open`, which checks its length and CRC.
 */
export async function readZip(path: string, limits: ZipLimits): Promise<Zip> {
  const info = await stat(path);
  if (info.size > limits.zipBytes) {
    throw new ImageError(
      'too-large',
      `The zip has ${describeBytes(info.size)}; ${describeBytes(limits.zipBytes)} are allowed.`,
    );
  }
  const zip = await openZip(path);
  try {
    if (zip.entryCount > limits.zipEntries) throw tooMany(limits);
    const items = new Map<string, ZipItem>();
    let bytes = 0;
    for await (const entry of zip.eachEntry()) {
      bytes += entry.uncompressedSize;
      if (bytes > limits.zipUnpackedBytes) {
        throw new ImageError(
          'too-large',
          `The zip unpacks to more than ${describeBytes(limits.zipUnpackedBytes)}, which is the limit.`,
        );
      }
      const item = await readItem(zip, entry);
      const known = items.get(item.path);
      // Tools write a directory more than once; a second file of one name has no right content.
      if (known && !(known.type === 'directory' && item.type === 'directory'))
        throw invalid(`it holds ${show(item.path)} twice`);
      items.set(item.path, item);
      if (items.size > limits.zipEntries) throw tooMany(limits);
    }
    return { items: checkParents(items, limits), [Symbol.dispose]: () => zip.close() };
  } catch (error) {
    zip.close();
    throw zipError(error);
  }
}

/** What is left of a failure of the zip reader once it is the zip's own fault. */
function zipError(error: unknown): unknown {
  if (error instanceof ImageError) return error;
  if (errorCode(error)?.startsWith('E')) return error;
  return invalid(error instanceof Error ? error.message : String(error), error);
}

async function openZip(path: string): Promise<ZipFile> {
  try {
    return await openPromise(path, { autoClose: false, strictFileNames: true, validateEntrySizes: true });
  } catch (error) {
    throw zipError(error);
  }
}

async function readItem(zip: ZipFile, entry: Entry): Promise<ZipItem> {
  const raw = entry.fileName;
  const name = normalise(raw);
  if (entry.isEncrypted()) throw invalid(`${show(raw)} is encrypted; zip it without a password`);
  if (!entry.canDecodeFileData())
    throw invalid(`${show(raw)} is packed in a way that is not known (method ${entry.compressionMethod}); use deflate`);
  const unix = entry.versionMadeBy >> 8 === MADE_BY_UNIX;
  const mode = unix ? entry.externalFileAttributes >>> 16 : 0;
  const kind = mode & S_IFMT;
  if (raw.endsWith('/') || kind === S_IFDIR) return { type: 'directory', path: name };
  if (kind === S_IFLNK) return { type: 'symlink', path: name, target: await readTarget(zip, entry, name) };
  if (kind !== 0 && kind !== S_IFREG) throw invalid(`${show(raw)} is a device, pipe or socket`);
  return {
    type: 'file',
    path: name,
    executable: (mode & 0o111) !== 0,
    size: entry.uncompressedSize,
    crc32: entry.crc32,
    method: entry.compressionMethod,
    packedSize: entry.compressedSize,
    offset: entry.relativeOffsetOfLocalHeader,
    open: () => content(zip, entry),
  };
}

async function readTarget(zip: ZipFile, entry: Entry, name: string): Promise<string> {
  if (entry.uncompressedSize > LONGEST_TARGET) throw invalid(`the link ${show(name)} is too long`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk);
  const target = Buffer.concat(chunks).toString('utf8');
  const end = posix.normalize(posix.join(posix.dirname(name), target));
  if (target === '' || target.includes('\0') || target.startsWith('/') || end === '..' || end.startsWith('../')) {
    throw invalid(`the link ${show(name)} leads out of it, to ${show(target)}`);
  }
  return target;
}

async function* content(zip: ZipFile, entry: Entry): AsyncGenerator<Uint8Array> {
  try {
    let sum = 0;
    for await (const chunk of await zip.openReadStreamPromise(entry)) {
      sum = crc32(chunk, sum);
      yield chunk;
    }
    if (sum !== entry.crc32) throw invalid(`${show(entry.fileName)} is damaged (its checksum is wrong)`);
  } catch (error) {
    throw zipError(error);
  }
}

function normalise(name: string): string {
  if (name.includes('\0') || name.length > 4096) throw invalid('a name in it is too long or holds a NUL character');
  if (name.startsWith('/') || /^[A-Za-z]:/.test(name)) throw invalid(`${show(name)} is an absolute path`);
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw invalid(`the name ${show(name)} leads out of it`);
  if (parts.length > DEEPEST) throw invalid(`${show(name)} is nested more than ${DEEPEST} deep`);
  if (parts.some((part) => Buffer.byteLength(part) > 255))
    throw invalid(`the name ${show(name)} has a part of more than 255 bytes`);
  // `.wh.` names mean something else in a layer.
  if (parts.some((part) => part.startsWith('.wh.')))
    throw invalid(`the name ${show(name)} begins with .wh., which images reserve`);
  if (parts.length === 0 && !name.endsWith('/')) throw invalid('an entry of it has no name');
  return parts.join('/');
}

/** Every part of a path but the last must be a directory; directories that the zip does not list are added. */
function checkParents(items: Map<string, ZipItem>, limits: ZipLimits): ZipItem[] {
  const checked = new Set<string>();
  for (const path of [...items.keys()]) {
    for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
      const name = path.slice(0, slash);
      // Then all above it are.
      if (checked.has(name)) break;
      checked.add(name);
      const parent = items.get(name);
      if (!parent) items.set(name, { type: 'directory', path: name });
      // One name may stand for hundreds of directories.
      if (items.size > limits.zipEntries) throw tooMany(limits);
      if (parent && parent.type !== 'directory')
        throw invalid(`${show(parent.path)} is a file or link and yet holds ${show(path)}`);
    }
  }
  items.delete('');
  return [...items.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

function tooMany(limits: ZipLimits): ImageError {
  return new ImageError('too-large', `The zip holds more than ${limits.zipEntries} files and directories.`);
}

function show(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);
}

function invalid(why: string, cause?: unknown): ImageError {
  return new ImageError('invalid', `The zip cannot be used: ${trimEnd(why.slice(0, LONGEST_REASON), '.')}.`, { cause });
}
