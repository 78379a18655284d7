export { openDirectoryStore } from './directory-store.ts';
export { objectReader } from './object-reader.ts';
export type { ObjectStore } from './object-store.ts';
export { s3Api } from './s3-api/plugin.ts';
export { createS3Store } from './s3-store.ts';
