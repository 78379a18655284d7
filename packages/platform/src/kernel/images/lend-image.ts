import type { ImageStore } from './image-store.ts';
import type { Descriptor } from './manifest.ts';

/** An image that others may stand on. */
export interface LentImage {
  digest: string;
  layers: Descriptor[];
  /** The config document as it is, unread. */
  config: unknown;
}

/** Lets who pushes to a repository push images that hold the layers of one in the store, without sending them. Throws `ImageError`. */
export async function lendImage(
  store: ImageStore,
  accountId: string,
  name: string,
  digest: string,
): Promise<LentImage> {
  const { manifest } = await store.readImage(digest);
  for (const { digest: layer } of manifest.layers) await store.repositories.linkBlob(accountId, name, layer);
  const config = await store.blobs.readBytes(manifest.config.digest, store.limits.configBytes);
  return { digest, layers: manifest.layers, config: JSON.parse(new TextDecoder().decode(config)) };
}
