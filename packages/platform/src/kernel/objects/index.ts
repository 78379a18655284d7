export { openDirectoryStore } from './directory-store.ts';
export { ObjectError, type ObjectErrorCode } from './errors.ts';
export { type ObjectLocation, objectReader } from './object-reader.ts';
export type {
  Bucket,
  ListObjectsOptions,
  ObjectInfo,
  ObjectPage,
  ObjectPlace,
  ObjectStore,
  PutOptions,
  RangeRequest,
  StoredObject,
} from './object-store.ts';
export { isBucketName, isObjectKey } from './object-store.ts';
export type { S3Deps } from './s3-api/context.ts';
export { type S3ApiOptions, s3Api } from './s3-api/plugin.ts';
export { createS3Store, type S3StoreOptions } from './s3-store.ts';
