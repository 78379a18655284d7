export interface RegistryCredentials {
  username: string;
  password: string;
}

/** The platform's image store and everything that fills it. Content-addressed, in `DIR/images`. */
export interface Images {
  /**
   * Resolves what a caller names to a digest in the store, fetching it if needed. `uri` is `registry/name:tag`,
   * `registry/name@sha256:…`, `oci:/dir[:tag]`, `oci-archive:/file.tar`, or `platform/name[:tag|@digest]` for the platform's own store.
   * Rejects with an `ImageError`; a wrong architecture names both. `platform/…` names are looked up in `accountId`'s
   * own repositories (`platform/base/…` needs none). What is fetched counts to that account's quota (`quota` when it would be too much).
   */
  resolve(uri: string, options?: ResolveOptions): Promise<ResolvedImage>;
  /** Makes an image of a zip of code: one layer on the base of that runtime (`NODE_22`, `PYTHON_3_11` …). Same zip, same digest. */
  fromCode(input: CodeInput): Promise<ResolvedImage>;
  /**
   * Runs `work`, which writes at most so many bytes on behalf of an account. Rejects with an `ImageError` `quota` before it begins where
   * the account's images may not take so many more.
   */
  reserve<T>(accountId: string, bytes: number, work: () => Promise<T>): Promise<T>;
  /** Code runtimes that this machine can serve now, for error messages and doctor. */
  codeRuntimes(): Promise<string[]>;
  /** Removes blobs, manifests and unpacked trees that no digest in `keep` needs. */
  collect(keep: ReadonlySet<string>): Promise<{ removedBytes: number }>;
}

export interface CodeInput {
  /** Path of the zip on this host. */
  zip: string;
  runtime: string;
  /** Absent: the image's command is the interpreter, and who makes sandboxes of it says what that runs. */
  entryPoint?: string[];
  /** Whose code it is, to whose quota the image counts. */
  accountId?: string;
  signal?: AbortSignal;
}

export interface ResolveOptions {
  credentials?: RegistryCredentials;
  /** Whose repositories a `platform/…` name means. */
  accountId?: string;
  signal?: AbortSignal;
}

export interface ResolvedImage {
  /** sha256:… of the image manifest for this machine's architecture. */
  digest: string;
  /** OCI names: amd64, arm64 … */
  architecture: string;
  sizeBytes: number;
}

/** `storage` is the server's own disk (full, not writable), `quota` what the account may have; every other reason is about the image that was asked for. */
export type ImageErrorReason =
  | 'invalid'
  | 'not-found'
  | 'architecture'
  | 'unauthorized'
  | 'unreachable'
  | 'too-large'
  | 'quota'
  | 'runtime-unavailable'
  | 'corrupt'
  | 'storage';

/** `reason` decides the wire error; the message names cause and remedy. */
export class ImageError extends Error {
  readonly reason: ImageErrorReason;
  constructor(reason: ImageError['reason'], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'ImageError';
    this.reason = reason;
  }
}
