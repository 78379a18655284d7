const ociIndex = 'application/vnd.oci.image.index.v1+json';
const ociManifest = 'application/vnd.oci.image.manifest.v1+json';
const ociConfig = 'application/vnd.oci.image.config.v1+json';
const ociLayerTar = 'application/vnd.oci.image.layer.v1.tar';
const dockerList = 'application/vnd.docker.distribution.manifest.list.v2+json';
const dockerManifest = 'application/vnd.docker.distribution.manifest.v2+json';
const dockerConfig = 'application/vnd.docker.container.image.v1+json';

const imageManifests: ReadonlySet<string> = new Set([ociManifest, dockerManifest]);
const indexes: ReadonlySet<string> = new Set([ociIndex, dockerList]);

/** Media types of the OCI image spec and of Docker's schema 2, by what they mean here. */
export const MEDIA = {
  ociIndex,
  ociManifest,
  ociConfig,
  ociLayerTar,
  imageManifests,
  indexes,
  manifests: new Set<string>([...imageManifests, ...indexes]) as ReadonlySet<string>,
  configs: new Set<string>([ociConfig, dockerConfig]) as ReadonlySet<string>,
  /** Layers whose content is not in the registry (Windows base layers); nothing here can run them. */
  isForeignLayer: (mediaType: string): boolean =>
    mediaType.includes('.foreign.') || mediaType.includes('nondistributable'),
} as const;
