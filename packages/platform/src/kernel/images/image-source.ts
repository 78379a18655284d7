import type { Descriptor } from './manifest.ts';

/** Somewhere that images come from: a registry, a directory, an archive. Both reject with an `ImageError`. */
export interface ImageSource {
  /** The name for messages. */
  readonly what: string;
  /** A manifest or index: the one that the source's own reference means when no digest is given. */
  manifest(digest: string | undefined, signal: AbortSignal): Promise<{ bytes: Uint8Array; mediaType?: string }>;
  blob(wanted: Descriptor, signal: AbortSignal): AsyncIterable<Uint8Array>;
}
