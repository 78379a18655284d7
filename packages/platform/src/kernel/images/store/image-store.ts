import { chmod, mkdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { architectureError, choosePlatform, type Platform, suitability } from '../architecture.ts';
import { ImageError, type ResolvedImage } from '../images.ts';
import type { ImageLimits } from '../limits.ts';
import { type ImageConfig, type ImageIndex, type ImageManifest, parseConfig, parseManifest } from '../manifest.ts';
import { UnpackThreads } from '../trees/unpack-threads.ts';
import { BlobStore } from './blob-store.ts';
import { Repositories } from './repositories.ts';
import { TempFiles } from './temp-files.ts';

/** An image that is in the store: its documents, read and checked. */
export interface StoredImage {
  digest: string;
  manifest: ImageManifest;
  config: ImageConfig;
}

/** `DIR/images`: blobs, the repositories that name them, and a place for half-made things. */
export class ImageStore {
  readonly dir: string;
  readonly blobs: BlobStore;
  readonly repositories: Repositories;
  readonly temp: TempFiles;
  readonly limits: ImageLimits;
  readonly unpacking: UnpackThreads;

  constructor(dir: string, limits: ImageLimits) {
    this.dir = dir;
    this.limits = limits;
    this.unpacking = new UnpackThreads(Math.max(2, availableParallelism()));
    this.temp = new TempFiles(join(dir, 'tmp'));
    this.blobs = new BlobStore(dir, this.temp);
    this.repositories = new Repositories(dir, this.temp);
  }

  /** Makes the directories and removes what a crash has left. */
  async init(): Promise<void> {
    await mkdir(this.dir, { recursive: true, mode: 0o700 });
    // Unpacked images hold setuid files of strangers: nobody else on this host may walk in.
    await chmod(this.dir, 0o700);
    await this.temp.sweep();
    await this.blobs.init();
    for await (const { manifests, link } of this.repositories.withoutBlobs()) {
      for (const digest of manifests) for (const part of await this.#parts(digest)) await link(part);
    }
  }

  /** Digests of what an image consists of; none for an index, or a manifest that is damaged. */
  async #parts(digest: string): Promise<string[]> {
    const manifest = await this.readManifest(digest).catch(() => undefined);
    return manifest?.kind === 'image' ? [manifest.config, ...manifest.layers].map((part) => part.digest) : [];
  }

  async readManifest(digest: string, mediaType?: string): Promise<ImageManifest | ImageIndex> {
    return parseManifest(await this.blobs.readBytes(digest, this.limits.manifestBytes), mediaType);
  }

  /** Reads an image's manifest and config. Throws `not-found`, `corrupt`, `invalid`. */
  async readImage(digest: string): Promise<StoredImage> {
    const manifest = await this.readManifest(digest);
    if (manifest.kind !== 'image') throw new ImageError('invalid', `${digest} is an index of images, not an image.`);
    return {
      digest,
      manifest,
      config: parseConfig(await this.blobs.readBytes(manifest.config.digest, this.limits.configBytes)),
    };
  }

  /** The image for `machine` that a stored manifest or index stands for. Throws `architecture` when there is none. */
  async resolve(what: string, digest: string, machine: Platform): Promise<ResolvedImage> {
    const manifest = await this.readManifest(digest);
    if (manifest.kind === 'index') {
      const offers = manifest.manifests.flatMap((item) =>
        item.platform ? [{ platform: item.platform, value: item }] : [],
      );
      const chosen = choosePlatform(machine, offers);
      if (!chosen)
        throw architectureError(
          what,
          machine,
          offers.map((o) => o.platform),
        );
      return this.describe(what, chosen.digest, machine);
    }
    return this.describe(what, digest, machine);
  }

  /** What `Images.resolve` answers for an image that is in the store whole. */
  async describe(what: string, digest: string, machine: Platform): Promise<ResolvedImage> {
    const { manifest, config } = await this.readImage(digest);
    if (suitability(machine, config.platform) === undefined) throw architectureError(what, machine, [config.platform]);
    for (const blob of [manifest.config, ...manifest.layers]) {
      if (!(await this.blobs.has(blob.digest, blob.size))) {
        throw new ImageError(
          'corrupt',
          `${what}: ${blob.digest} is missing from the image store; push or deploy the image again.`,
        );
      }
    }
    const sizeBytes = manifest.layers.reduce((sum, layer) => sum + layer.size, manifest.config.size);
    return { digest, architecture: config.platform.architecture, sizeBytes };
  }

  /** Keeps an image from being collected for a while: between being resolved and being recorded as in use. */
  async touch(digest: string, now: number): Promise<void> {
    const manifest = await this.readManifest(digest);
    const parts = manifest.kind === 'image' ? [manifest.config, ...manifest.layers] : manifest.manifests;
    for (const part of [{ digest }, ...parts]) await this.blobs.touch(part.digest, now);
  }
}
