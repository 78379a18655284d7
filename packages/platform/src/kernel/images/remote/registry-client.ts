import type { ImageSource } from '../image-source.ts';
import { ImageError, type RegistryCredentials } from '../images.ts';
import type { Descriptor } from '../manifest.ts';
import { MEDIA } from '../media-types.ts';
import { formatReference, type Reference } from './reference.ts';
import { type RegistryDeps, RegistrySession } from './registry-session.ts';

const MANIFEST_TIMEOUT_MS = 30_000;
const BLOB_TIMEOUT_MS = 60 * 60_000;
const IDLE_TIMEOUT_MS = 60_000;
/** What has to come in that time, but for the end: a byte now and then would take an hour. */
const LEAST_BYTES = 64 * 1024;

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
      let cancel = (): void => undefined;
      const goOn = (): void => {
        cancel();
        cancel = deps.clock.after(IDLE_TIMEOUT_MS, () => stalled.abort());
      };
      goOn();
      try {
        const { body } = await session.get(`blobs/${wanted.digest}`, request);
        let came = 0;
        for await (const chunk of body) {
          came += chunk.length;
          if (came >= LEAST_BYTES) {
            came = 0;
            goOn();
          }
          yield chunk;
        }
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof ImageError) throw error;
        const why = stalled.signal.aborted ? 'stopped sending' : 'broke the connection';
        throw new ImageError(
          'unreachable',
          `${what}: the registry ${why} in the middle of ${wanted.digest}; try again.`,
          { cause: error },
        );
      } finally {
        cancel();
      }
    },
  };
}
