import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { orMissing } from '../../system-error.ts';
import { digestOf } from '../digest.ts';
import type { ImageSource } from '../image-source.ts';
import { ImageError } from '../images.ts';
import { describeBytes } from '../limits.ts';
import { isObject } from '../manifest.ts';
import { MEDIA } from '../media-types.ts';
import type { ImageStore } from '../store/image-store.ts';
import { inside, ociLayoutSource, readSmall } from './oci-layout.ts';

/** An unpacked archive; `release` removes what was unpacked. */
export interface OpenArchive {
  source: ImageSource;
  release(): Promise<void>;
}

/** An archive may hold an image for several architectures. */
const ARCHIVE_PER_IMAGE = 2;

/**
 * Opens a tar (plain, gzip or zstd) of an OCI image layout (`oci-archive`) or of `docker save` (`docker-archive`); which
 * of both is told by what is in it. Throws `ImageError`.
 */
export async function openArchive(
  store: ImageStore,
  path: string,
  tag: string | undefined,
  what: string,
  signal: AbortSignal,
): Promise<OpenArchive> {
  const info = await orMissing(stat(path));
  if (!info) throw new ImageError('not-found', `${what}: there is no such file.`);
  if (!info.isFile()) throw new ImageError('invalid', `${what} is not a file; a directory is named with oci:/path.`);
  const imageBytes = store.limits.imageBytes * ARCHIVE_PER_IMAGE;
  if (info.size > imageBytes)
    throw new ImageError(
      'too-large',
      `${what} has ${describeBytes(info.size)}; ${describeBytes(imageBytes)} are allowed.`,
    );
  const into = store.temp.next();
  const release = (): Promise<void> => rm(into, { recursive: true, force: true });
  const job = {
    into,
    layers: [{ path }],
    spentBytes: 0,
    spentEntries: 0,
    imageBytes,
    imageEntries: store.limits.imageEntries,
  };
  const report = await store.unpacking.run(job, signal);
  if (!report.ok) throw new ImageError(report.reason ?? 'invalid', `${what} cannot be read: ${report.message}`);
  try {
    const isLayout = (await orMissing(stat(join(into, 'index.json')))) !== undefined;
    const source = isLayout
      ? ociLayoutSource(into, tag, what, store.limits.manifestBytes)
      : await dockerSource(into, tag, what, store.limits, signal);
    return { source, release };
  } catch (error) {
    await release();
    throw error;
  }
}

interface SavedImage {
  config: string;
  tags: string[];
  layers: string[];
}

async function dockerSource(
  dir: string,
  tag: string | undefined,
  what: string,
  limits: { manifestBytes: number; configBytes: number },
  signal: AbortSignal,
): Promise<ImageSource> {
  if (!(await orMissing(stat(join(dir, 'manifest.json'))))) {
    throw new ImageError(
      'invalid',
      `${what} holds neither an OCI image layout (index.json) nor a saved image (manifest.json).`,
    );
  }
  const images = readSaved(await readSmall(dir, join(dir, 'manifest.json'), what, limits.manifestBytes), what);
  const image =
    tag === undefined ? images[0] : images.find((saved) => saved.tags.some((name) => name.endsWith(`:${tag}`)));
  if (!image) throw new ImageError('not-found', `${what}: no image there is tagged "${tag ?? ''}".`);
  if (tag === undefined && images.length > 1) {
    throw new ImageError('invalid', `${what} holds ${images.length} images; add :tag to say which is meant.`);
  }
  const files = new Map<string, string>();
  const config = await readSmall(dir, join(dir, image.config), what, limits.configBytes);
  files.set(digestOf(config), await inside(dir, join(dir, image.config), what));
  const layers = [];
  for (const name of image.layers) {
    const path = await inside(dir, join(dir, name), what);
    const layer = await digestFile(path, signal);
    files.set(layer.digest, path);
    layers.push({ mediaType: MEDIA.ociLayerTar, ...layer });
  }
  const manifest = {
    schemaVersion: 2,
    mediaType: MEDIA.ociManifest,
    config: { mediaType: MEDIA.ociConfig, digest: digestOf(config), size: config.length },
    layers,
  };
  return {
    what,
    manifest: async () => ({ bytes: Buffer.from(JSON.stringify(manifest)) }),
    async *blob(wanted, abort) {
      yield* createReadStream(files.get(wanted.digest) ?? '', { signal: abort, highWaterMark: 1024 * 1024 });
    },
  };
}

function readSaved(bytes: Uint8Array, what: string): SavedImage[] {
  const bad = (): ImageError => new ImageError('invalid', `${what}: its manifest.json is not that of a saved image.`);
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch {
    throw bad();
  }
  if (!Array.isArray(value) || value.length === 0) throw bad();
  return value.map((item: unknown) => {
    if (!isObject(item) || typeof item.Config !== 'string' || !isTexts(item.Layers)) throw bad();
    return { config: item.Config, tags: isTexts(item.RepoTags) ? item.RepoTags : [], layers: item.Layers };
  });
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

async function digestFile(path: string, signal: AbortSignal): Promise<{ digest: string; size: number }> {
  const hash = createHash('sha256');
  const file = await open(path, 'r');
  const { size } = await file.stat();
  for await (const chunk of file.createReadStream({ highWaterMark: 1024 * 1024 })) {
    signal.throwIfAborted();
    hash.update(chunk);
  }
  return { digest: `sha256:${hash.digest('hex')}`, size };
}
