import { mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { extract } from 'tar-stream';
import { expect, it } from 'vitest';
import type { BlobStore } from '../store/blob-store.ts';
import { openImages } from '../testing/images.ts';
import { tempDir } from '../testing/temp-dir.ts';
import { AGENT, directoryEntries, type LayerEntry, writeLayer } from './layer.ts';

/** A file whose content cannot be read: at once, or after the first of its parts. */
function broken(path: string, after: string[]): LayerEntry {
  const open = async function* () {
    for (const part of after) yield Buffer.from(part);
    throw new Error(`${path} is broken`);
  };
  return { type: 'file', path, mode: 0o644, size: 4, open, ...AGENT };
}

it.each([
  ['the first file', [broken('a', [])]],
  ['the first file in the middle', [broken('a', ['12'])]],
  ['a later file', [{ type: 'directory', path: 'a', mode: 0o755, ...AGENT }, broken('b', []), broken('c', [])]],
] satisfies [string, LayerEntry[]][])('rejects, and ends, when it cannot be read: %s', async (_what, entries) => {
  const { store } = await openImages(await tempDir());
  await expect(writeLayer(store.blobs, entries)).rejects.toThrow('is broken');
});

const MEBIBYTE = 1024 ** 2;

/** The sizes of the pieces in which a store gets a layer of that directory, and each file's content in it. */
async function piecesOf(dir: string): Promise<{ pieces: number[]; contents: Map<string, Buffer> }> {
  const chunks: Uint8Array[] = [];
  const put: BlobStore['put'] = async (source) => {
    for await (const chunk of source) chunks.push(chunk);
    return { digest: 'sha256:none', size: 0 };
  };
  await writeLayer({ put } as BlobStore, await directoryEntries(dir, { target: '' }));
  const contents = new Map<string, Buffer>();
  const reader = extract();
  reader.end(Buffer.concat(chunks));
  for await (const entry of reader) contents.set(entry.header.name, await buffer(entry));
  return { pieces: chunks.map(({ length }) => length), contents };
}

it('holds files of every size as they are, and writes thousands of small ones in few pieces', async () => {
  const dir = join(await tempDir(), 'tree');
  await mkdir(dir);
  const sizes = [0, 1, 511, 512, 513, MEBIBYTE - 1, MEBIBYTE, MEBIBYTE + 1, 2 * MEBIBYTE + 7];
  const files = new Map(sizes.map((size) => [`of-${size}`, Buffer.alloc(size, `${size} `)]));
  for (let at = 0; at < 2000; at++) files.set(`small-${at}`, Buffer.from(`the content of file ${at}`));
  for (const [name, content] of files) await writeFile(join(dir, name), content);
  const { pieces, contents } = await piecesOf(dir);
  expect(contents.size).toBe(files.size);
  for (const [name, content] of files) expect(contents.get(name)?.equals(content), name).toBe(true);
  expect(pieces.length).toBeLessThan(files.size / 100);
});

it.each([10, 2 * MEBIBYTE])('refuses a file of %i bytes that has become shorter meanwhile', async (size) => {
  const dir = join(await tempDir(), 'tree');
  await mkdir(dir);
  await writeFile(join(dir, 'file'), Buffer.alloc(size));
  const entries = await directoryEntries(dir, { target: '' });
  await truncate(join(dir, 'file'), size - 1);
  const { store } = await openImages(await tempDir());
  await expect(writeLayer(store.blobs, entries)).rejects.toThrow('Size mismatch');
});
