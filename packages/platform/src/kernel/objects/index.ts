export { openDirectoryStore } from './directory-store.ts';
export { guardedStore } from './guarded-store.ts';
export { objectReader } from './object-reader.ts';
export type { ObjectStore } from './object-store.ts';
export type { ObjectLimits } from './object-usage.ts';
export { type ObjectWriter, objectWriter } from './object-writer.ts';
export { openS3Client } from './s3-client.ts';
export { createS3Store } from './s3-store.ts';
