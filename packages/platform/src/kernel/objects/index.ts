export { CHECKSUM_ALGORITHMS, type ChecksumAlgorithm, type Declared, type Verified, verifyBody } from './checksums.ts';
export { openDirectoryStore } from './directory-store.ts';
export { isObjectErrorCode, ObjectError, type ObjectErrorCode } from './errors.ts';
export { guardedStore } from './guarded-store.ts';
export { objectReader } from './object-reader.ts';
export {
  type Bucket,
  isBucketName,
  isObjectKey,
  type ObjectInfo,
  type ObjectPlace,
  type ObjectStore,
  type PutOptions,
  type UploadPlace,
} from './object-store.ts';
export type { ObjectLimits } from './object-usage.ts';
export { type ObjectWriter, objectWriter } from './object-writer.ts';
export { parseRange } from './range.ts';
export { openS3Client } from './s3-client.ts';
export { createS3Store } from './s3-store.ts';
