import { createReadStream } from 'node:fs';
import { open, realpath } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { orMissing } from '../../system-error.ts';
import { describePlatform } from '../architecture.ts';
import { hexOf } from '../digest.ts';
import type { ImageSource } from '../image-source.ts';
import { ImageError } from '../images.ts';
import { type Descriptor, parseManifest } from '../manifest.ts';
import { MEDIA } from '../media-types.ts';

const REF_NAME = 'org.opencontainers.image.ref.name';
const CONTAINERD_NAME = 'io.containerd.image.name';

/** An OCI image layout directory as a source; without a tag its only image, or this machine's of several. */
export function ociLayoutSource(
  dir: string,
  tag: string | undefined,
  what: string,
  manifestBytes: number,
): ImageSource {
  const blob = (digest: string): string => join(dir, 'blobs', 'sha256', hexOf(digest));
  return {
    what,
    async manifest(digest, signal) {
      signal.throwIfAborted();
      if (digest !== undefined) return { bytes: await readSmall(dir, blob(digest), what, manifestBytes) };
      return {
        bytes: selectTag(await readSmall(dir, join(dir, 'index.json'), what, manifestBytes), tag, what),
        mediaType: MEDIA.ociIndex,
      };
    },
    async *blob(wanted, signal) {
      const path = await inside(dir, blob(wanted.digest), what);
      yield* createReadStream(path, { signal, highWaterMark: 1024 * 1024 });
    },
  };
}

/** The index as it is, or only those of its entries that carry the tag. */
function selectTag(bytes: Uint8Array, tag: string | undefined, what: string): Uint8Array {
  const index = parseManifest(bytes, MEDIA.ociIndex);
  if (index.kind !== 'index') throw new ImageError('invalid', `${what}: its index.json is not an image index.`);
  if (tag === undefined) {
    if (isAmbiguous(index.manifests)) {
      const tags = index.manifests.flatMap((item) => item.annotations?.[REF_NAME] ?? []);
      throw new ImageError(
        'invalid',
        `${what} holds several images for one machine${tags.length > 0 ? `, tagged ${tags.slice(0, 10).join(', ')}` : ''}; name one by its tag, as in ${what}:${tags[0] ?? 'TAG'}.`,
      );
    }
    return bytes;
  }
  const named = (item: (typeof index.manifests)[number]): boolean =>
    item.annotations?.[REF_NAME] === tag || item.annotations?.[CONTAINERD_NAME]?.endsWith(`:${tag}`) === true;
  const manifests = index.manifests.filter(named);
  if (manifests.length === 0) {
    const tags = index.manifests.flatMap((item) => item.annotations?.[REF_NAME] ?? []);
    throw new ImageError(
      'not-found',
      `${what}: no image there is tagged "${tag}"${tags.length > 0 ? `; there are ${tags.slice(0, 10).join(', ')}` : ''}.`,
    );
  }
  return Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: MEDIA.ociIndex, manifests }));
}

/** Whether one of several images would have to be guessed: two for the same platform, or one that does not say for which. */
function isAmbiguous(manifests: readonly Descriptor[]): boolean {
  if (manifests.length < 2) return false;
  const platforms = manifests
    .map(({ platform }) => platform && describePlatform(platform))
    // What builders attach to an image, such as its provenance.
    .filter((platform) => platform !== 'unknown/unknown');
  return platforms.includes(undefined) || new Set(platforms).size < platforms.length;
}

export async function readSmall(dir: string, path: string, what: string, maxBytes: number): Promise<Buffer> {
  const file = await open(await inside(dir, path, what), 'r');
  try {
    const info = await file.stat();
    if (!info.isFile()) throw new ImageError('invalid', `${what} is not an OCI image layout.`);
    if (info.size > maxBytes) throw new ImageError('too-large', `${what}: a document in it is too large.`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/** The real path of a file of the layout: a link in it that leads out would let a stranger's archive name files of this host. */
export async function inside(dir: string, path: string, what: string): Promise<string> {
  const real = await orMissing(realpath(path));
  const root = await orMissing(realpath(dir));
  if (real === undefined || root === undefined)
    throw new ImageError('not-found', `${what} is not there, or is not an OCI image layout (a part of it is missing).`);
  if (!real.startsWith(root + sep)) throw new ImageError('invalid', `${what} holds a link that leads out of it.`);
  return real;
}
