import type { Readable } from 'node:stream';
import { ObjectError } from './errors.ts';
import type { ObjectStore } from './object-store.ts';

/** Where an `s3://` location points. */
export interface ObjectLocation {
  bucket: string;
  key: string;
  versionId?: string;
}

/**
 * How services read, with their length in bytes, `s3://` locations that an account named: its own buckets only. Undefined when there is nothing, and
 * for another account's bucket, which is not told apart from nothing.
 */
export function objectReader(store: ObjectStore) {
  return async (
    accountId: string,
    location: ObjectLocation,
    signal: AbortSignal,
  ): Promise<{ body: Readable; bytes: number } | undefined> => {
    const { bucket, key, versionId } = location;
    if (versionId !== undefined && versionId !== 'null') return undefined;
    if ((await store.bucket(bucket))?.owner !== accountId) return undefined;
    try {
      const { body, info } = await store.get({ bucket, key });
      const abort = (): void => {
        body.destroy(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
      };
      if (signal.aborted) abort();
      signal.addEventListener('abort', abort, { once: true });
      body.once('close', () => signal.removeEventListener('abort', abort));
      return { body, bytes: info.size };
    } catch (error) {
      if (error instanceof ObjectError && (error.status === 404 || error.code === 'KeyTooLongError')) return undefined;
      throw error;
    }
  };
}
