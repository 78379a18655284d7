import { createHash } from 'node:crypto';
import { constants, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Header, type Pack, pack } from 'tar-stream';
import { CliError } from '../cli-error.ts';
import type { Layer } from './image-document.ts';
import { LAYER_TYPE } from './image-document.ts';

interface Owned {
  /** In the image, absolute. */
  path: string;
  uid: number;
  gid: number;
}

/** One thing in a layer. `source` is the file on this machine, `target` a link's text. */
export type LayerEntry =
  | (Owned & { kind: 'folder'; mode: number })
  | (Owned & { kind: 'file'; mode: number; source: string; size: number })
  | (Owned & { kind: 'link'; target: string });

/** 1980-01-02: the same for all, and late enough for those who count from 1980. */
const EVERY_TIME = new Date(Date.UTC(1980, 0, 2));

/**
 * Writes a layer (a plain tar) to the file `path`. Its bytes depend on paths, modes, owners and contents only: not on times, on the
 * order in which files are found, or on who runs it. Folders above an entry are not in it, so those of the base stay as they are.
 */
export async function writeLayerFile(
  path: string,
  entries: readonly LayerEntry[],
  signal: AbortSignal,
): Promise<Layer> {
  const hash = createHash('sha256');
  let size = 0;
  const measured = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      size += chunk.length;
      done(null, chunk);
    },
  });
  const packer = pack();
  const sorted = [...entries].sort((a, b) => (a.path < b.path ? -1 : 1));
  const filled = fill(packer, sorted, signal).catch((error: unknown) => {
    packer.destroy(error instanceof Error ? error : new Error(String(error)));
    throw error;
  });
  const [content, written] = await Promise.allSettled([
    filled,
    pipeline(packer, measured, createWriteStream(path, { mode: 0o600 }), { signal }),
  ]);
  if (content.status === 'rejected') throw content.reason;
  if (written.status === 'rejected') throw written.reason;
  return { mediaType: LAYER_TYPE, digest: `sha256:${hash.digest('hex')}`, size };
}

async function fill(packer: Pack, entries: readonly LayerEntry[], signal: AbortSignal): Promise<void> {
  for (const entry of entries) {
    signal.throwIfAborted();
    const name = entry.path.replace(/^\/+/, '');
    if (name === '') continue;
    const header = { name, uid: entry.uid, gid: entry.gid, mtime: EVERY_TIME };
    if (entry.kind === 'folder') addEmpty(packer, { ...header, name: `${name}/`, mode: entry.mode, type: 'directory' });
    else if (entry.kind === 'link')
      addEmpty(packer, { ...header, mode: 0o777, type: 'symlink', linkname: entry.target });
    else await fillFile(packer, entry, { ...header, mode: entry.mode, size: entry.size, type: 'file' });
  }
  packer.finalize();
}

function addEmpty(packer: Pack, header: Partial<Header> & { name: string }): void {
  packer.entry(header).on('error', (error) => packer.destroy(error));
}

async function fillFile(
  packer: Pack,
  entry: Extract<LayerEntry, { kind: 'file' }>,
  header: Partial<Header> & { name: string },
): Promise<void> {
  // Not through a link, should the file have become one since it was looked at.
  const file = await open(entry.source, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const now = (await file.stat()).size;
    if (now !== entry.size) throw changed(entry.source);
    const sink = packer.entry(header);
    // One that grows meanwhile is cut off, one that shrinks is noticed by the packer.
    if (entry.size === 0) sink.end(new Uint8Array());
    else await pipeline(file.createReadStream({ end: entry.size - 1, autoClose: false }), sink);
  } finally {
    await file.close();
  }
}

function changed(path: string): CliError {
  return new CliError('failure', `${path} changed while it was read.`, 'Deploy again.');
}
