import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { machinePlatform } from '../architecture.ts';
import { digestOf } from '../digest.ts';
import { MEDIA } from '../media-types.ts';
import { type TarEntry, tar } from './tar.ts';

/** An image's documents and blobs, not yet anywhere. */
export interface MadeImage {
  manifest: Buffer;
  digest: string;
  blobs: Map<string, Buffer>;
}

/** Makes an image of these layers; for this machine's architecture unless told otherwise. */
export async function makeImage(
  layers: readonly (readonly TarEntry[])[],
  architecture = machinePlatform().architecture,
): Promise<MadeImage> {
  const blobs = new Map<string, Buffer>();
  const add = (bytes: Buffer, mediaType: string) => {
    blobs.set(digestOf(bytes), bytes);
    return { mediaType, digest: digestOf(bytes), size: bytes.length };
  };
  const made = [];
  const diffs: string[] = [];
  for (const entries of layers) {
    const plain = await tar(entries);
    diffs.push(digestOf(plain));
    made.push(add(gzipSync(plain), `${MEDIA.ociLayerTar}+gzip`));
  }
  const config = {
    architecture,
    os: 'linux',
    config: { Env: ['A=1'], Entrypoint: ['/bin/app'], Cmd: ['--x'], WorkingDir: '/srv', User: '1000:1000' },
    rootfs: { type: 'layers', diff_ids: diffs },
  };
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MEDIA.ociManifest,
      config: add(Buffer.from(JSON.stringify(config)), MEDIA.ociConfig),
      layers: made,
    }),
  );
  return { manifest, digest: digestOf(manifest), blobs };
}

/** An index over images. */
export function makeIndex(images: readonly { image: MadeImage; architecture: string; tag?: string }[]): Buffer {
  const manifests = images.map(({ image, architecture, tag }) => ({
    mediaType: MEDIA.ociManifest,
    digest: image.digest,
    size: image.manifest.length,
    platform: { os: 'linux', architecture },
    ...(tag ? { annotations: { 'org.opencontainers.image.ref.name': tag } } : {}),
  }));
  return Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: MEDIA.ociIndex, manifests }));
}

/** Writes an OCI image layout directory. */
export async function writeLayout(dir: string, index: Buffer, images: readonly MadeImage[]): Promise<void> {
  const blobs = join(dir, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });
  await writeFile(join(dir, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  await writeFile(join(dir, 'index.json'), index);
  for (const image of images) {
    for (const [digest, bytes] of [...image.blobs, [image.digest, image.manifest] as const])
      await writeFile(join(blobs, digest.slice(7)), bytes);
  }
}

/** An architecture that this machine is not. */
export function otherArchitecture(): string {
  return machinePlatform().architecture === 'arm64' ? 'amd64' : 'arm64';
}
