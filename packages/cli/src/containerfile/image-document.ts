/** What an image says of how it runs, as far as a Containerfile can set it; names as in the OCI image configuration. */
export interface RunSettings {
  User?: string;
  Env?: string[];
  Entrypoint?: string[];
  Cmd?: string[];
  WorkingDir?: string;
  Labels?: Record<string, string>;
  ExposedPorts?: Record<string, object>;
  StopSignal?: string;
}

export interface Layer {
  mediaType: string;
  digest: string;
  size: number;
}

/** What an image stands on. */
export interface BaseImage {
  /** As the FROM line names it, or what took its place. */
  name: string;
  layers: Layer[];
  diffIds: string[];
  platform: { os: string; architecture: string; variant?: string };
  settings: RunSettings;
}

export const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';
export const CONFIG_TYPE = 'application/vnd.oci.image.config.v1+json';
export const LAYER_TYPE = 'application/vnd.oci.image.layer.v1.tar';

/** Reads the platform's answer about a base. Throws a TypeError when it is none. */
export function readBase(name: string, answer: unknown): BaseImage {
  const document = member(answer, 'config');
  const settings = member(document, 'config');
  const rootfs = member(document, 'rootfs');
  const variant = member(document, 'variant');
  const layers = list(member(answer, 'layers')).map((layer) => ({
    mediaType: ociType(text(member(layer, 'mediaType'), 'mediaType')),
    digest: text(member(layer, 'digest'), 'digest'),
    size: Number(member(layer, 'size')),
  }));
  const diffIds = texts(member(rootfs, 'diff_ids'));
  if (diffIds.length !== layers.length)
    throw new TypeError(`${name}: its config and its manifest have different numbers of layers.`);
  if (list(member(settings, 'OnBuild')).length > 0)
    throw new TypeError(`${name} has ONBUILD instructions, which need a builder.`);
  return {
    name,
    layers,
    diffIds,
    platform: {
      os: text(member(document, 'os'), 'os'),
      architecture: text(member(document, 'architecture'), 'architecture'),
      ...(typeof variant === 'string' && variant !== '' ? { variant } : {}),
    },
    settings: {
      ...optional('User', member(settings, 'User'), String),
      ...optional('Env', member(settings, 'Env'), texts),
      ...optional('Entrypoint', member(settings, 'Entrypoint'), texts),
      ...optional('Cmd', member(settings, 'Cmd'), texts),
      ...optional('WorkingDir', member(settings, 'WorkingDir'), String),
      ...optional('Labels', member(settings, 'Labels'), (labels) => Object.fromEntries(pairs(labels))),
      ...optional('ExposedPorts', member(settings, 'ExposedPorts'), (ports) =>
        Object.fromEntries(pairs(ports).map(([port]) => [port, {}])),
      ),
      ...optional('StopSignal', member(settings, 'StopSignal'), String),
    },
  };
}

/** The config document of an image; the same parts give the same bytes, for nothing in it tells when or where it was made. */
export function configDocument(base: BaseImage, settings: RunSettings, layers: readonly Layer[]): Buffer {
  const sorted = <T>(record: Record<string, T>): Record<string, T> =>
    Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
  const { User, Env, Entrypoint, Cmd, WorkingDir, Labels, ExposedPorts, StopSignal } = settings;
  const config = {
    User,
    ExposedPorts: ExposedPorts && sorted(ExposedPorts),
    Env,
    Entrypoint,
    Cmd,
    WorkingDir,
    Labels: Labels && sorted(Labels),
    StopSignal,
  };
  // The digest of a plain tar is its diff id, too.
  const diff_ids = [...base.diffIds, ...layers.map(({ digest }) => digest)];
  return Buffer.from(JSON.stringify({ ...base.platform, config, rootfs: { type: 'layers', diff_ids } }));
}

/** The manifest of an image. */
export function manifestDocument(config: { digest: string; size: number }, layers: readonly Layer[]): Buffer {
  return Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST_TYPE,
      config: { mediaType: CONFIG_TYPE, digest: config.digest, size: config.size },
      layers: layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size })),
    }),
  );
}

// An OCI manifest names layers by OCI's names; Docker's mean the same bytes.
function ociType(mediaType: string): string {
  if (mediaType === 'application/vnd.docker.image.rootfs.diff.tar.gzip') return `${LAYER_TYPE}+gzip`;
  return mediaType === 'application/vnd.docker.image.rootfs.diff.tar' ? LAYER_TYPE : mediaType;
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown, what: string): string {
  if (typeof value === 'string') return value;
  throw new TypeError(`The platform’s answer about the base image has no ${what}.`);
}

function texts(value: unknown): string[] {
  return list(value).map((item) => text(item, 'list of texts'));
}

function pairs(value: unknown): [string, string][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).map(([name, one]) => [name, String(one)]);
}

function optional<Name extends string, T>(
  name: Name,
  value: unknown,
  read: (value: unknown) => T,
): Partial<Record<Name, T>> {
  if (value === undefined || value === null || value === '') return {};
  const held: Partial<Record<Name, T>> = {};
  held[name] = read(value);
  return held;
}
