import type { Descriptor } from '../manifest.ts';
import type { ImageStore } from '../store/image-store.ts';

/** An image that others may stand on. */
export interface BaseImage {
  digest: string;
  layers: Descriptor[];
  /** The config document as it is, unread. */
  config: unknown;
}

/** Mounts the layers of an image in the store into a repository (OCI distribution, "mounting a blob"): who pushes there may name them without sending them. Throws `ImageError`. */
export async function mountLayers(
  store: ImageStore,
  accountId: string,
  name: string,
  digest: string,
): Promise<BaseImage> {
  const { manifest } = await store.readImage(digest);
  for (const { digest: layer } of manifest.layers) await store.repositories.linkBlob(accountId, name, layer);
  const config = await store.blobs.readBytes(manifest.config.digest, store.limits.configBytes);
  return { digest, layers: manifest.layers, config: JSON.parse(new TextDecoder().decode(config)) };
}
