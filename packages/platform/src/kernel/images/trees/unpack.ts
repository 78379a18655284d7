import { createHash } from 'node:crypto';
import { closeSync, createReadStream, existsSync, openSync, readSync } from 'node:fs';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { extract, type Header } from 'tar-stream';
import { errorCode } from '../../system-error.ts';
import { trimEnd } from '../../trim-end.ts';
import { ImageError } from '../images.ts';
import { describeBytes } from '../limits.ts';
import { isObject } from '../manifest.ts';
import { storageError } from '../store/storage-error.ts';
import type { EntryMeta, Tree } from './tree.ts';

export interface LayerFile {
  path: string;
  /** Checked while the file is read; absent for a file that nobody has named by its content. */
  digest?: string;
}

/** What unpacking may still use; shared by all layers of an image. */
export interface Budget {
  /** Bytes of tar streams, headers and padding included. */
  bytes: number;
  entries: number;
}

const WHITEOUT = '.wh.';
const OPAQUE = '.wh..wh..opq';
const WHITEOUT_META = '.wh..wh.';
const HIGHEST_ID = 2 ** 32 - 2;

/**
 * Unpacks one layer (tar; plain, gzip or zstd, told by its first bytes) over what `tree` holds, and checks the file's
 * digest on the way. Whiteouts as in the OCI image layer spec; device nodes and FIFOs are left out, extended attributes
 * ignored. Throws `ImageError`: `corrupt`, `invalid`, `too-large`, `storage`. The tree is then half-made.
 */
export async function unpackLayer(layer: LayerFile, tree: Tree, budget: Budget): Promise<void> {
  if (!existsSync(layer.path)) throw damaged(layer);
  const hash = createHash('sha256');
  const untar = extract();
  tree.beginLayer();
  const entries = writeEntries(untar, tree, budget);
  const pumped = pipeline(
    createReadStream(layer.path, { highWaterMark: 1024 * 1024 }),
    tap((chunk) => hash.update(chunk)),
    decompressor(layer.path),
    tap((chunk) => spend(budget, chunk.length)),
    untar,
  );
  const [pump, write] = await Promise.allSettled([pumped, entries]);
  // The first cause is worth more than what it made fail after it.
  const failed =
    [write, pump].find((r) => r.status === 'rejected' && r.reason instanceof ImageError) ??
    [pump, write].find((r) => r.status === 'rejected');
  if (failed?.status === 'rejected') throw await explain(failed.reason, layer);
  if (layer.digest !== undefined && `sha256:${hash.digest('hex')}` !== layer.digest) throw damaged(layer);
}

async function writeEntries(untar: ReturnType<typeof extract>, tree: Tree, budget: Budget): Promise<void> {
  for await (const entry of untar) {
    if (budget.entries < 1) throw new ImageError('too-large', 'The image has more files than an image may have.');
    await writeEntry(entry.header, entry, tree, budget);
    budget.entries -= 1 + tree.takeImplicit();
    entry.resume();
  }
}

async function writeEntry(header: Header, body: AsyncIterable<unknown>, tree: Tree, budget: Budget): Promise<void> {
  const path = trimEnd(header.name, '/');
  const slash = path.lastIndexOf('/');
  const name = path.slice(slash + 1);
  if (name.startsWith(WHITEOUT)) return whiteOut(header.name.slice(0, slash + 1), name, tree);

  const meta = readMeta(header);
  switch (header.type) {
    case 'directory':
      return tree.directory(header.name, meta);
    case 'symlink':
      return tree.symlink(header.name, header.linkname ?? '', meta);
    case 'link':
      return tree.hardlink(header.name, header.linkname ?? '');
    case 'file':
    case 'contiguous-file': {
      if (header.size > budget.bytes) throw tooLarge();
      const file = tree.file(header.name, meta);
      try {
        for await (const chunk of body) if (chunk instanceof Uint8Array) file.write(chunk);
      } finally {
        file.close();
      }
      return;
    }
    case 'block-device':
    case 'character-device':
    case 'fifo':
      return;
    default:
      throw new ImageError(
        'invalid',
        `The image cannot be unpacked: ${JSON.stringify(header.name.slice(0, 200))} is of a kind that is not known.`,
      );
  }
}

function whiteOut(dir: string, name: string, tree: Tree): void {
  if (name === OPAQUE) tree.empty(dir);
  if (name.startsWith(WHITEOUT_META)) return;
  const target = name.slice(WHITEOUT.length);
  if (target === '' || target === '.' || target === '..') {
    throw new ImageError(
      'invalid',
      `The image cannot be unpacked: ${JSON.stringify(name)} removes nothing that has a name.`,
    );
  }
  tree.remove(dir + target);
}

function readMeta(header: Header): EntryMeta {
  const pax = isObject(header.pax) ? header.pax : {};
  if (Object.keys(pax).some((key) => key.startsWith('GNU.sparse.'))) {
    throw new ImageError(
      'invalid',
      'The image cannot be unpacked: it holds sparse tar entries; build it without --sparse.',
    );
  }
  return {
    mode: header.mode & 0o7777,
    uid: id(pax.uid ?? header.uid),
    gid: id(pax.gid ?? header.gid),
    mtime: seconds(pax.mtime ?? header.mtime.getTime() / 1000),
  };
}

function id(value: unknown): number {
  const number = Number(value);
  if (Number.isInteger(number) && number >= 0 && number <= HIGHEST_ID) return number;
  throw new ImageError('invalid', 'The image cannot be unpacked: an owner in it is not a user or group id.');
}

function seconds(value: unknown): number {
  const number = Number(value);
  // Whole seconds within what every file system keeps.
  return Number.isFinite(number) ? Math.min(Math.max(Math.floor(number), 0), 2 ** 34 - 1) : 0;
}

function tap(see: (chunk: Uint8Array) => void): Transform {
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      try {
        see(chunk);
        done(null, chunk);
      } catch (error) {
        done(error instanceof Error ? error : new Error(String(error)));
      }
    },
  });
}

function spend(budget: Budget, bytes: number): void {
  budget.bytes -= bytes;
  if (budget.bytes < 0) throw tooLarge();
}

function tooLarge(): ImageError {
  return new ImageError('too-large', 'The image is larger, once unpacked, than an image may be.');
}

function decompressor(path: string): Transform {
  const start = Buffer.alloc(4);
  const fd = openSync(path, 'r');
  try {
    readSync(fd, start, 0, 4, 0);
  } finally {
    closeSync(fd);
  }
  if (start.readUInt16BE(0) === 0x1f8b) return createGunzip();
  return start.readUInt32LE(0) === 0xfd2fb528 ? createZstdDecompress() : tap(() => undefined);
}

/** A layer that does not parse may be malformed, or damaged on disk: the digest tells which, so finish reading it. */
async function explain(error: unknown, layer: LayerFile): Promise<unknown> {
  if (error instanceof ImageError && error.reason !== 'invalid') return error;
  const stored = storageError(error);
  if (stored instanceof ImageError && stored.reason === 'storage') return stored;
  if (error instanceof ImageError && layer.digest === undefined) return error;
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(layer.path)) hash.update(chunk);
  if (layer.digest !== undefined && `sha256:${hash.digest('hex')}` !== layer.digest) return damaged(layer);
  if (error instanceof ImageError) return error;
  // A system error's message holds paths of this host; its code does not.
  const why = errorCode(error) ?? (error instanceof Error ? error.message : String(error));
  return new ImageError('invalid', `${layer.digest ?? 'It'} cannot be unpacked: ${why}.`, { cause: error });
}

function damaged(layer: LayerFile): ImageError {
  return new ImageError('corrupt', `${layer.digest ?? 'A file'} is damaged in the image store.`);
}

/** The budget of one image, and how it is told when it is spent. */
export function imageBudget(limits: { imageBytes: number; imageEntries: number }): Budget {
  return { bytes: limits.imageBytes, entries: limits.imageEntries };
}

/** Adds the limit to a `too-large` error that only knows it was passed. */
export function withLimit(error: unknown, limits: { imageBytes: number; imageEntries: number }): unknown {
  if (!(error instanceof ImageError) || error.reason !== 'too-large') return error;
  return new ImageError(
    'too-large',
    `${error.message} Allowed are ${describeBytes(limits.imageBytes)} and ${limits.imageEntries} entries.`,
  );
}
