import type { ObjectStore } from './object-store.ts';

/** How services write to `s3://` locations that an account named: into its own buckets only. */
export interface ObjectWriter {
  /** Whether the account has this bucket. */
  hasBucket(accountId: string, bucket: string): Promise<boolean>;
  /** Stores or replaces a JSON object; false when the bucket is gone or another account's. */
  putJson(accountId: string, place: { bucket: string; key: string }, value: unknown): Promise<boolean>;
}

export function objectWriter(store: ObjectStore): ObjectWriter {
  const hasBucket = async (accountId: string, bucket: string): Promise<boolean> =>
    (await store.bucket(bucket))?.owner === accountId;
  return {
    hasBucket,
    async putJson(accountId, place, value) {
      if (!(await hasBucket(accountId, place.bucket))) return false;
      const bytes = Buffer.from(JSON.stringify(value));
      await store.put(place, asyncOf(bytes), { contentType: 'application/json' });
      return true;
    },
  };
}

async function* asyncOf(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}
