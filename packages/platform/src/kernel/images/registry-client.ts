import type { ImageSource } from './image-source.ts';
import { ImageError, type RegistryCredentials } from './images.ts';
import type { Descriptor } from './manifest.ts';
import { MEDIA } from './media-types.ts';
import { formatReference, type Reference } from './reference.ts';
import { type RegistryDeps, RegistrySession } from './registry-session.ts';

const MANIFEST_TIMEOUT_MS = 30_000;
const BLOB_TIMEOUT_MS = 60 * 60_000;
const IDLE_TIMEOUT_MS = 60_000;

/** An image in a registry that speaks the OCI distribution spec (Docker's included), as a source. */
export function registrySource(
  deps: RegistryDeps,
  reference: Reference,
  options: { credentials?: RegistryCredentials; manifestBytes: number },
): ImageSource {
  const session = new RegistrySession(deps, { ...reference, credentials: options.credentials });
  const what = formatReference(reference);
  return {
    what,
    async manifest(digest, signal) {
      const wanted = digest ?? reference.digest ?? reference.tag ?? 'latest';
      const answer = await session.get(`manifests/${wanted}`, {
        accept: [...MEDIA.manifests].join(', '),
        maxBytes: options.manifestBytes,
        timeoutMs: MANIFEST_TIMEOUT_MS,
        signal,
      });
      const mediaType = answer.headers['content-type'];
      try {
        return { bytes: await answer.bytes(), mediaType: typeof mediaType === 'string' ? mediaType : undefined };
      } catch (error) {
        signal.throwIfAborted();
        throw new ImageError('unreachable', `${what}: the registry stopped in the middle of the manifest; try again.`, {
          cause: error,
        });
      }
    },
    async *blob(wanted: Descriptor, signal) {
      const stalled = new AbortController();
      const both = AbortSignal.any([signal, stalled.signal]);
      // One byte more than expected, so that the store, which knows the size, says what is wrong.
      const request = { accept: '*/*', maxBytes: wanted.size + 1, timeoutMs: BLOB_TIMEOUT_MS, signal: both };
      const answer = await session.get(`blobs/${wanted.digest}`, request);
      let cancel = deps.clock.after(IDLE_TIMEOUT_MS, () => stalled.abort());
      try {
        for await (const chunk of answer.body) {
          cancel();
          cancel = deps.clock.after(IDLE_TIMEOUT_MS, () => stalled.abort());
          yield chunk;
        }
      } catch (error) {
        signal.throwIfAborted();
        const why = stalled.signal.aborted ? 'stopped sending' : 'broke the connection';
        throw new ImageError(
          'unreachable',
          `${what}: the registry ${why} in the middle of ${wanted.digest}; try again.`,
          { cause: error },
        );
      } finally {
        cancel();
        answer.body.destroy();
      }
    },
  };
}
