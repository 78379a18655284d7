import type { Bases } from '../bases/bases.ts';
import { isDigest } from '../digest.ts';
import type { PreparedImages } from '../trees/prepare.ts';
import type { ImageStore } from './image-store.ts';

export interface CollectDeps {
  store: ImageStore;
  bases: Bases;
  prepared: PreparedImages;
  now: number;
  graceMs: number;
}

/**
 * Removes what nobody needs: blobs and manifests that neither `keep`, nor a tag, nor a base, nor work under way leads to
 * and that are older than the grace, and unpacked trees of images that are not in `keep` (the tree of a base, or of packages, goes
 * with the last image that began as it). Returns the bytes freed.
 */
export async function collectGarbage(deps: CollectDeps, keep: ReadonlySet<string>): Promise<{ removedBytes: number }> {
  const { store, bases, prepared } = deps;
  const below = await standingOn(deps, keep);
  const roots = new Set([...keep, ...below, ...prepared.busy(), ...(await bases.digests())].filter(isDigest));
  for await (const digest of store.repositories.tagged()) roots.add(digest);
  const young = new Set<string>();
  const old: { digest: string; size: number }[] = [];
  for await (const blob of store.blobs.list()) {
    if (deps.now - blob.modifiedAt < deps.graceMs) young.add(blob.digest);
    else old.push(blob);
  }
  const needed = new Set<string>();
  for (const digest of roots) await mark(store, digest, needed);

  const gone = new Set<string>();
  let removedBytes = 0;
  for (const { digest, size } of old) {
    if (needed.has(digest)) continue;
    await store.blobs.remove(digest);
    gone.add(digest);
    removedBytes += size;
  }
  await store.repositories.forget(gone);
  removedBytes += await prepared.collect(new Set([...keep, ...below]));
  return { removedBytes };
}

async function mark(store: ImageStore, digest: string, needed: Set<string>): Promise<void> {
  if (needed.has(digest)) return;
  needed.add(digest);
  const manifest = await store.readManifest(digest).catch(() => undefined);
  if (!manifest) return;
  if (manifest.kind === 'index') for (const item of manifest.manifests) await mark(store, item.digest, needed);
  else for (const part of [manifest.config, ...manifest.layers]) needed.add(part.digest);
}

/** Bases, and packages on them, whose unpacked tree an image in `keep` began as; the next version of that image will too. */
async function standingOn(deps: CollectDeps, keep: ReadonlySet<string>): Promise<string[]> {
  const layersOf = async (digest: string): Promise<string[]> => {
    const image = isDigest(digest) ? await deps.store.readImage(digest).catch(() => undefined) : undefined;
    return image?.manifest.layers.map((layer) => layer.digest) ?? [];
  };
  const kept = await Promise.all([...keep].map(layersOf));
  const below = [...(await deps.bases.digests()), ...(await deps.prepared.beginnings())];
  const used = await Promise.all(
    below.map(async (digest) => {
      const own = await layersOf(digest);
      return own.length > 0 && kept.some((layers) => own.every((layer, i) => layer === layers[i]));
    }),
  );
  return below.filter((_, i) => used[i]);
}
