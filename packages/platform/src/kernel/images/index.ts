import { join, resolve as resolvePath, sep } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { Outbound } from '../outbound/index.ts';
import type { PreparedImage } from '../sandbox/host-stage.ts';
import { machinePlatform, type Platform } from './architecture.ts';
import { type BaseProgress, Bases } from './bases/bases.ts';
import { defaultPythonDirs } from './bases/python-interpreters.ts';
import { CODE_RUNTIMES } from './code/code-command.ts';
import { CODE_DIR, codeImage } from './code/code-image.ts';
import { writeImage } from './code/write-image.ts';
import { openArchive } from './formats/archive.ts';
import { KeyedLayers } from './formats/keyed-layers.ts';
import type { LayerEntry } from './formats/layer.ts';
import { ociLayoutSource } from './formats/oci-layout.ts';
import { ImageError, type Images, type ResolvedImage, type ResolveOptions } from './images.ts';
import { DEFAULT_IMAGE_LIMITS, type ImageLimits } from './limits.ts';
import type { Descriptor } from './manifest.ts';
import { fetchImage } from './remote/fetch-image.ts';
import { type ImageUri, parseImageUri } from './remote/image-uri.ts';
import { registrySource } from './remote/registry-client.ts';
import { collectGarbage } from './store/collect.ts';
import { ImageStore } from './store/image-store.ts';
import { SharedFolder } from './store/shared-folder.ts';
import { DEFAULT_USAGE_LIMITS, ImageUsage, type UsageLimits } from './store/usage.ts';
import { PreparedImages, type TreeBudget } from './trees/prepare.ts';
import { SharedTrees, type SharedTreesDeps } from './trees/shared-trees.ts';

export { machinePlatform } from './architecture.ts';
export { type BaseProgress, Bases } from './bases/bases.ts';
export { writeImage } from './code/write-image.ts';
export { withZip, type ZipsDeps } from './code/zip-object.ts';
export { directoryEntries, type LayerEntry, writeLayer } from './formats/layer.ts';
export { imageProblem } from './image-problem.ts';
export {
  ImageError,
  type Images,
  type RegistryCredentials,
  type ResolvedImage,
} from './images.ts';
export { DEFAULT_IMAGE_LIMITS, describeBytes, type ImageLimits } from './limits.ts';
export { isRepositoryName, isTag, parseReference, repositoryArn } from './remote/reference.ts';
export { mountLayers } from './trees/mount-layers.ts';

export interface ImagesDeps {
  /** The platform's data directory; images live in `images` below it. */
  dataDir: string;
  clock: Clock;
  log: Logger;
  outbound: Pick<Outbound, 'fetch' | 'resolve'>;
  limits?: Partial<ImageLimits>;
  /** What the images of one account may take. */
  quotas?: Partial<UsageLimits>;
  /** Directories below which `oci:` and `oci-archive:` names are read; everywhere but in the data directory when absent. */
  localPaths?: readonly string[];
  /** Where language runtimes that were fetched are kept; several data directories may share it. */
  cacheDir?: string;
  /** Where layers and unpacked images that every data directory makes are kept for the next one. */
  sharedDir?: string | undefined;
  /** Directories searched for `python3.X`. */
  pythonDirs?: readonly string[];
  /** What is not in use and younger than this is kept: something may be about to use it. Milliseconds, default an hour. */
  collectGraceMs?: number;
  /** Told of the steps of making a base image. */
  progress?: (event: BaseProgress) => void;
  machine?: Platform;
}

/** The image store with everything that fills it; `store` and `bases` are for the registry API. */
export interface ImagesRoom extends Images {
  readonly store: ImageStore;
  readonly bases: Bases;
  readonly usage: ImageUsage;
  /** A layer that is known by what it is made of: `entries` are only asked for when no layer of that key was made before. */
  layer(key: string, entries: () => Promise<readonly LayerEntry[]>, signal?: AbortSignal): Promise<Descriptor>;
  /**
   * Unpacks (once) and returns the read-only root file system. Concurrent calls for one digest share the work. Where an account asks for
   * it, what it unpacks must fit its quota (`ImageError` `quota`); without one the image was accepted before.
   */
  prepare(digest: string, signal?: AbortSignal, accountId?: string): Promise<PreparedImage>;
  /** As `prepare`, for an image that every data directory makes: unpacked once for all that share a cache. */
  prepareCommon(digest: string, signal?: AbortSignal): Promise<PreparedImage>;
  /** Waits for what is still being written to disk. */
  close(): Promise<void>;
}

const COLLECT_GRACE_MS = 3_600_000;
/** Of bases and code interpreters, at most two versions each. */
const SHARED_LAYERS = 24;
const SHARED_TREES = 12;
const BASE_PREFIX = 'base/';

/** Opens the image store of a data directory, clears what a crash has left in it, and returns it. */
export async function createImages(deps: ImagesDeps): Promise<ImagesRoom> {
  const { clock, log } = deps;
  const machine = deps.machine ?? machinePlatform();
  const store = new ImageStore(join(deps.dataDir, 'images'), { ...DEFAULT_IMAGE_LIMITS, ...deps.limits });
  await store.init();
  const shared = (name: string, most: number): SharedFolder | undefined =>
    deps.sharedDir === undefined ? undefined : new SharedFolder({ dir: join(deps.sharedDir, name), most, clock, log });
  const layers = new KeyedLayers(store, shared('layers', SHARED_LAYERS));
  // What is made of code stays in this data directory.
  const codeLayers = new KeyedLayers(store, undefined);
  const bases = new Bases({
    store,
    layers,
    machine,
    clock,
    log,
    pythonDirs: deps.pythonDirs ?? (await defaultPythonDirs()),
    progress: deps.progress,
    programsDir: deps.cacheDir && join(deps.cacheDir, 'programs'),
  });
  const folder = shared('trees', SHARED_TREES);
  const unpack: SharedTreesDeps['unpack'] = (job, signal) => store.unpacking.run(job, signal);
  const trees = folder && new SharedTrees({ folder, unpack });
  const prepared = new PreparedImages(store, trees);
  await prepared.init();
  const usage = new ImageUsage({
    store,
    clock,
    limits: { ...DEFAULT_USAGE_LIMITS, ...deps.quotas },
    treeBytes: (digests) => prepared.bytesOf(digests),
    common: async () => new Set((await Promise.all((await bases.digests()).map(partsOf))).flat()),
  });
  const fetching = (account: string | undefined) => ({ store, machine, clock, log, account, usage });

  /** An image's digest and those of all its parts. */
  async function partsOf(digest: string): Promise<string[]> {
    const image = await store.readImage(digest).catch(() => undefined);
    return [digest, ...(image ? [image.manifest.config, ...image.manifest.layers].map((part) => part.digest) : [])];
  }

  async function fromPlatform(
    uri: string,
    named: Extract<ImageUri, { kind: 'platform' }>,
    options: ResolveOptions,
  ): Promise<ResolvedImage> {
    if (named.name.startsWith(BASE_PREFIX))
      return bases.ensure(`${named.name.slice(BASE_PREFIX.length)}:${named.tag ?? 'latest'}`, options.signal);
    const { accountId } = options;
    if (accountId === undefined) throw new ImageError('invalid', `${uri} can only be used by an account.`);
    const digest = named.digest ?? (await store.repositories.tag(accountId, named.name, named.tag ?? 'latest'));
    const known =
      digest !== undefined && (await store.repositories.manifestType(accountId, named.name, digest)) !== undefined;
    if (digest === undefined || !known) {
      const tags = (await store.repositories.tags(accountId, named.name)) ?? [];
      const have =
        tags.length > 0 ? `it has the tags ${tags.slice(0, 10).join(', ')}` : 'nothing was pushed under that name';
      throw new ImageError(
        'not-found',
        `${uri} is not in the platform's image store; ${have}. Push or deploy it first.`,
      );
    }
    await store.touch(digest, clock.now());
    return store.resolve(uri, digest, machine);
  }

  function assertReadable(path: string): void {
    const within = (dir: string): boolean => `${resolvePath(path)}${sep}`.startsWith(`${resolvePath(dir)}${sep}`);
    if (within(deps.dataDir) || (deps.localPaths && !deps.localPaths.some(within))) {
      throw new ImageError(
        'unauthorized',
        `Images may not be read from ${path}; the operator of the platform says from where they may.`,
      );
    }
  }

  async function fromLocal(
    uri: string,
    named: Extract<ImageUri, { path: string }>,
    account: string | undefined,
    signal: AbortSignal,
  ): Promise<ResolvedImage> {
    assertReadable(named.path);
    if (named.kind === 'oci') {
      return fetchImage(
        fetching(account),
        ociLayoutSource(named.path, named.tag, uri, store.limits.manifestBytes),
        undefined,
        signal,
      );
    }
    const archive = await openArchive(store, named.path, named.tag, uri, signal);
    try {
      return await fetchImage(fetching(account), archive.source, undefined, signal);
    } finally {
      await archive.release();
    }
  }

  return {
    store,
    bases,
    usage,
    async resolve(uri, options = {}) {
      const signal = options.signal ?? new AbortController().signal;
      const named = parseImageUri(uri);
      if (named.kind === 'platform') return fromPlatform(uri, named, options);
      if (named.kind !== 'registry') return fromLocal(uri, named, options.accountId, signal);
      const source = registrySource({ outbound: deps.outbound, clock, log }, named.reference, {
        credentials: options.credentials,
        manifestBytes: store.limits.manifestBytes,
      });
      return fetchImage(fetching(options.accountId), source, named.reference.digest, signal);
    },
    async fromCode(input) {
      try {
        const image = await codeImage({ store, bases, layers: codeLayers, machine, usage }, input);
        await store.touch(image.digest, clock.now());
        return image;
      } catch (error) {
        if (!(error instanceof ImageError) || error.reason !== 'runtime-unavailable') throw error;
        throw new ImageError(
          'runtime-unavailable',
          `${error.message} Code runtimes that can be had here: ${(await codeRuntimes()).join(', ')}.`,
          { cause: error },
        );
      }
    },
    reserve: (accountId, bytes, work) => usage.during(accountId, bytes, work),
    codeRuntimes,
    layer: (key, entries, signal) => layers.make(key, entries, signal),
    async prepare(digest, signal, accountId) {
      await prepareBaseOf(digest, signal);
      if (accountId === undefined) {
        await preparePackagesOf(digest, signal, {});
        return prepared.prepare(digest, signal);
      }
      const budget = {
        room: () => usage.room(accountId),
        take: (bytes: number) => usage.take(accountId, { bytes, parts: 0 }),
        tooMuch: () => usage.tooManyBytes(),
      };
      const image = await preparePackagesOf(digest, signal, { accountId, budget })
        .then(() => prepared.prepare(digest, signal, { budget }))
        .finally(() => usage.forget(accountId));
      // What was unpacked for somebody else counts all the same.
      await usage.check(accountId, 0);
      return image;
    },
    async prepareCommon(digest, signal) {
      if (!(await trees?.find(digest))) await prepareBaseOf(digest, signal);
      return prepared.prepare(digest, signal, { common: true });
    },
    async collect(keep) {
      const graceMs = deps.collectGraceMs ?? COLLECT_GRACE_MS;
      const collected = await collectGarbage({ store, bases, prepared, now: clock.now(), graceMs }, keep);
      await codeLayers.tidy();
      return collected;
    },
    close: () => prepared.close(),
  };

  async function codeRuntimes(): Promise<string[]> {
    const available = new Set(await bases.available());
    return CODE_RUNTIMES.filter((runtime) => available.has(runtime.base)).map((runtime) => runtime.name);
  }

  /** Unpacked once, the base is shared by every image that stands on it. */
  async function prepareBaseOf(digest: string, signal: AbortSignal | undefined): Promise<void> {
    const base = await baseOf(digest);
    if (base !== undefined) await prepared.prepare(base, signal, { common: true });
  }

  /** Unpacked once, the packages of code are shared by all its versions that have the same ones: they are an image of their own, which nothing runs. */
  async function preparePackagesOf(
    digest: string,
    signal: AbortSignal | undefined,
    { accountId, budget }: { accountId?: string; budget?: TreeBudget },
  ): Promise<void> {
    const base = await baseOf(digest);
    if (base === undefined) return;
    const below = (await store.readImage(base)).manifest.layers.length;
    const { config, manifest } = await store.readImage(digest);
    if (manifest.layers.length !== below + 2 || config.run.workingDir !== CODE_DIR) return;
    const run = { entrypoint: [], cmd: [], env: [], workingDir: CODE_DIR, user: config.run.user };
    const image = { platform: config.platform, layers: manifest.layers.slice(0, -1), run };
    const packages = await writeImage(store, image);
    if (accountId !== undefined)
      for (const made of [packages, (await store.readImage(packages)).manifest.config.digest])
        await store.repositories.linkMade(accountId, made);
    await prepared.prepare(packages, signal, { beginning: true, budget });
  }

  async function baseOf(digest: string): Promise<string | undefined> {
    if (prepared.isReady(digest)) return undefined;
    const layers = (await store.readImage(digest)).manifest.layers.map((layer) => layer.digest);
    for (const base of await bases.digests()) {
      const image = await store.readImage(base).catch(() => undefined);
      const own = image?.manifest.layers.map((layer) => layer.digest) ?? [];
      if (
        base !== digest &&
        own.length > 0 &&
        own.length < layers.length &&
        own.every((layer, i) => layer === layers[i])
      )
        return base;
    }
    return undefined;
  }
}
export { digestOf, isDigest } from './digest.ts';
export { type ImageIndex, type ImageManifest, parseManifest } from './manifest.ts';
export { MEDIA } from './media-types.ts';
export type { BlobInfo } from './store/blob-store.ts';
export { ImageStore } from './store/image-store.ts';
export { storageError } from './store/storage-error.ts';
export { ImageUsage } from './store/usage.ts';
export { writeAll } from './store/write-all.ts';
