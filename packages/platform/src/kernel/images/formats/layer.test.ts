import { expect, it } from 'vitest';
import { openImages } from '../testing/images.ts';
import { tempDir } from '../testing/temp-dir.ts';
import { AGENT, type LayerEntry, writeLayer } from './layer.ts';

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
