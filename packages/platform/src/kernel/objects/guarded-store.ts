import { mapFileError } from './errors.ts';
import type { ObjectStore } from './object-store.ts';

/** `store` that writes nothing while `need` throws: neither what is new, nor the rest of what is on its way. */
export function guardedStore(store: ObjectStore, need: () => void): ObjectStore {
  const guarded = async function* (body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const part of body) {
      need();
      yield part;
    }
  };
  /** What the disk says is told in the words of S3. */
  const needRoom = (): void => {
    try {
      need();
    } catch (error) {
      throw mapFileError(error);
    }
  };
  return {
    ...store,
    async createBucket(name, owner) {
      needRoom();
      await store.createBucket(name, owner);
    },
    async put(place, body, options) {
      needRoom();
      return store.put(place, guarded(body), options);
    },
    async createUpload(place, options) {
      needRoom();
      return store.createUpload(place, options);
    },
    async uploadPart(upload, partNumber, body) {
      needRoom();
      return store.uploadPart(upload, partNumber, guarded(body));
    },
    async completeUpload(upload, parts, options) {
      needRoom();
      return store.completeUpload(upload, parts, options);
    },
  };
}
