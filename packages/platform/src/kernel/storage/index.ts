export type { Database, DatabaseHealth, DatabaseOptions, Executor } from './database.ts';
export { openDatabase } from './database.ts';
export type { Drizzle } from './drizzle.ts';
export {
  DatabaseBusyError,
  DatabaseError,
  DatabaseUnavailableError,
  DirectoryInUseError,
  MigrationError,
  StorageFullError,
} from './errors.ts';
export { fingerprintOf } from './fingerprint.ts';
export type { IdempotencyKey, IdempotencyOptions, IdempotentWork, Settle } from './idempotency-store.ts';
export { IdempotencyConflictError, IdempotencyPendingError, IdempotencyStore } from './idempotency-store.ts';
export type { Migration } from './migrations.ts';
export { migrate } from './migrations.ts';
export { preparePgliteSnapshot } from './pglite-snapshot.ts';
export {
  DuplicateResourceError,
  InvalidCursorError,
  MissingResourceError,
  TooManyTagsError,
  VersionConflictError,
} from './resource-errors.ts';
export type { ListOptions, NewResource, Page, Resource, ResourceStoreOptions } from './resource-store.ts';
export { ResourceStore } from './resource-store.ts';
export { resources, storageMigrations } from './tables.ts';
