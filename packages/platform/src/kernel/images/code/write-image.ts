import type { ImageRunConfig } from '../../sandbox/host-stage.ts';
import type { Platform } from '../architecture.ts';
import type { Descriptor } from '../manifest.ts';
import { MEDIA } from '../media-types.ts';
import type { ImageStore } from '../store/image-store.ts';

export interface NewImage {
  platform: Platform;
  /** All of them plain tars made by `writeLayer`, or taken from an image made of such. */
  layers: readonly Descriptor[];
  run: ImageRunConfig;
}

/** Writes config and manifest of an image whose layers are in the store; the same parts give the same digest. */
export async function writeImage(store: ImageStore, image: NewImage): Promise<string> {
  const { run } = image;
  const config = await store.blobs.putBytes(
    encode({
      architecture: image.platform.architecture,
      os: image.platform.os,
      config: {
        User: run.user,
        Env: run.env,
        Entrypoint: run.entrypoint,
        Cmd: run.cmd,
        WorkingDir: run.workingDir,
      },
      // The digest of a plain tar is its diff id too.
      rootfs: { type: 'layers', diff_ids: image.layers.map((layer) => layer.digest) },
    }),
  );
  const manifest = await store.blobs.putBytes(
    encode({
      schemaVersion: 2,
      mediaType: MEDIA.ociManifest,
      config: { mediaType: MEDIA.ociConfig, ...config },
      layers: image.layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size })),
    }),
  );
  return manifest.digest;
}

function encode(document: unknown): Buffer {
  return Buffer.from(JSON.stringify(document));
}
