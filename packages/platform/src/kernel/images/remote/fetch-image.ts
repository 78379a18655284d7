import type { Logger } from 'pino';
import { type Clock, sleep } from '../../clock.ts';
import { eachAtOnce } from '../../each-at-once.ts';
import { architectureError, choosePlatform, type Platform, suitability } from '../architecture.ts';
import { digestOf } from '../digest.ts';
import type { ImageSource } from '../image-source.ts';
import { ImageError, type ResolvedImage } from '../images.ts';
import { describeBytes } from '../limits.ts';
import { type Descriptor, type ImageIndex, type ImageManifest, parseConfig, parseManifest } from '../manifest.ts';
import { MEDIA } from '../media-types.ts';
import type { BlobInfo } from '../store/blob-store.ts';
import type { ImageStore } from '../store/image-store.ts';
import type { ImageUsage } from '../store/usage.ts';

const DEEPEST_INDEX = 4;
const LAYERS_AT_ONCE = 3;
const ATTEMPTS = 3;
const PAUSE_MS = 500;

export interface FetchImageDeps {
  store: ImageStore;
  machine: Platform;
  clock: Clock;
  log: Logger;
  /** Whose image it will be; only the platform's own have nobody. */
  account: string | undefined;
  usage: Pick<ImageUsage, 'during'>;
}

/**
 * Brings an image from `source` into the store: picks this machine's manifest, checks size, the account's quota and architecture
 * before any layer is fetched, verifies every digest, and skips what is already there because the same account fetched it: a blob that is
 * there for another reason is another's, whose digest a source may know without having it. `wanted` is the digest that was asked for.
 */
export async function fetchImage(
  deps: FetchImageDeps,
  source: ImageSource,
  wanted: string | undefined,
  signal: AbortSignal,
): Promise<ResolvedImage> {
  const { store } = deps;
  const { bytes, manifest } = await findManifest(deps, source, wanted, signal);
  checkManifest(source, manifest, store.limits.imageBytes);
  const itself = { digest: digestOf(bytes), size: bytes.length };
  const coming = await bytesMissing(deps, [itself, manifest.config, ...manifest.layers]);
  return deps.usage.during(deps.account, coming, () => bringImage(deps, source, { bytes, manifest }, signal));
}

async function bringImage(
  deps: FetchImageDeps,
  source: ImageSource,
  { bytes, manifest }: { bytes: Uint8Array; manifest: ImageManifest },
  signal: AbortSignal,
): Promise<ResolvedImage> {
  const { store, account } = deps;
  await fetchBlob(deps, source, manifest.config, signal);
  const config = parseConfig(await store.blobs.readBytes(manifest.config.digest, store.limits.configBytes));
  if (suitability(deps.machine, config.platform) === undefined)
    throw architectureError(source.what, deps.machine, [config.platform]);

  await eachAtOnce(LAYERS_AT_ONCE, manifest.layers, signal, (layer, shared) => fetchBlob(deps, source, layer, shared));
  // Last: a manifest in the store promises that its parts are there.
  const { digest } = await store.blobs.putBytes(bytes);
  if (account !== undefined) await store.repositories.linkFetched(account, digest);
  await store.touch(digest, deps.clock.now());
  return store.describe(source.what, digest, deps.machine);
}

async function findManifest(
  deps: FetchImageDeps,
  source: ImageSource,
  wanted: string | undefined,
  signal: AbortSignal,
): Promise<{ bytes: Uint8Array; manifest: ImageManifest }> {
  let digest = wanted;
  for (let depth = 0; depth < DEEPEST_INDEX; depth++) {
    const { bytes, mediaType } = await source.manifest(digest, signal);
    if (bytes.length > deps.store.limits.manifestBytes) {
      throw new ImageError(
        'too-large',
        `${source.what}: its manifest is larger than ${describeBytes(deps.store.limits.manifestBytes)}.`,
      );
    }
    if (digest !== undefined && digestOf(bytes) !== digest) {
      throw new ImageError('corrupt', `${source.what}: the manifest that came as ${digest} is ${digestOf(bytes)}.`);
    }
    const manifest = parseManifest(bytes, mediaType);
    if (manifest.kind === 'image') return { bytes, manifest };
    digest = chooseFrom(manifest, source.what, deps.machine).digest;
  }
  throw new ImageError('invalid', `${source.what}: its indexes are nested more than ${DEEPEST_INDEX} deep.`);
}

function chooseFrom(index: ImageIndex, what: string, machine: Platform): Descriptor {
  const usable = index.manifests.filter((item) => MEDIA.manifests.has(item.mediaType));
  const [only] = usable;
  // The image's own config tells the platform then, and is checked.
  if (only && usable.length === 1 && !only.platform) return only;
  const offers = usable.flatMap((item) => (item.platform ? [{ platform: item.platform, value: item }] : []));
  const chosen = choosePlatform(machine, offers);
  if (chosen) return chosen;
  const real = offers.map((offer) => offer.platform).filter((platform) => platform.os !== 'unknown');
  throw architectureError(what, machine, real);
}

function checkManifest(source: ImageSource, manifest: ImageManifest, imageBytes: number): void {
  if (!MEDIA.configs.has(manifest.config.mediaType)) {
    throw new ImageError(
      'invalid',
      `${source.what} is not a container image but "${manifest.config.mediaType.slice(0, 100)}".`,
    );
  }
  const foreign = manifest.layers.find((layer) => MEDIA.isForeignLayer(layer.mediaType));
  if (foreign)
    throw new ImageError(
      'invalid',
      `${source.what} has a layer that registries do not carry (${foreign.mediaType.slice(0, 100)}).`,
    );
  const bytes = manifest.layers.reduce((sum, layer) => sum + layer.size, manifest.config.size);
  if (bytes > imageBytes) {
    throw new ImageError(
      'too-large',
      `${source.what} has ${describeBytes(bytes)}; an image may have ${describeBytes(imageBytes)}.`,
    );
  }
}

async function fetchBlob(
  deps: FetchImageDeps,
  source: ImageSource,
  blob: Descriptor,
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await bring(deps, source, blob, signal);
    } catch (error) {
      signal.throwIfAborted();
      // A connection that broke or a body that came wrong may come right; a refusal will not.
      const again = error instanceof ImageError && (error.reason === 'corrupt' || error.reason === 'unreachable');
      if (!again || attempt === ATTEMPTS) throw error;
      deps.log.debug(
        { image: source.what, digest: blob.digest, attempt, err: error },
        'blob did not arrive, trying again',
      );
      await sleep(deps.clock, PAUSE_MS * attempt, signal);
    }
  }
}

/** What all of these take that the account has not fetched before. */
async function bytesMissing({ store, account }: FetchImageDeps, blobs: readonly BlobInfo[]): Promise<number> {
  if (account === undefined) return 0;
  let bytes = 0;
  for (const blob of new Map(blobs.map((one) => [one.digest, one])).values())
    if (!(await hasBrought(store, account, blob))) bytes += blob.size;
  return bytes;
}

async function hasBrought(store: ImageStore, account: string, { digest, size }: BlobInfo): Promise<boolean> {
  return (await store.repositories.hasFetched(account, digest)) && (await store.blobs.has(digest, size));
}

async function bring(
  { store, account }: FetchImageDeps,
  source: ImageSource,
  blob: Descriptor,
  signal: AbortSignal,
): Promise<void> {
  const fetch = (abort: AbortSignal): AsyncIterable<Uint8Array> => source.blob(blob, abort);
  if (account === undefined) return store.blobs.ensure(blob, fetch, signal);
  if (await hasBrought(store, account, blob)) return;
  await store.blobs.put(fetch(signal), { ...blob, maxBytes: blob.size, signal });
  await store.repositories.linkFetched(account, blob.digest);
}
