export type { Changes } from './change-feed.ts';
export { ChangeFeed } from './change-feed.ts';
export { type Change, forgetChanges, noteChanges } from './changes.ts';
export type { Database, Executor } from './database.ts';
export { openDatabase } from './database.ts';
export { lockDirectory } from './directory-lock.ts';
export {
  DatabaseBusyError,
  DatabaseError,
  DatabaseUnavailableError,
  DirectoryInUseError,
  StorageFullError,
} from './errors.ts';
export { fromResource, timesOf } from './from-resource.ts';
export type { IdempotencyKey, IdempotentWork } from './idempotency-store.ts';
export { IdempotencyConflictError, IdempotencyPendingError, IdempotencyStore } from './idempotency-store.ts';
export { Known } from './known.ts';
export type { Migration } from './migrations.ts';
export { migrate } from './migrations.ts';
export { nameTaken } from './name-taken.ts';
export {
  DuplicateResourceError,
  InvalidCursorError,
  MissingResourceError,
  TooManyResourcesError,
  TooManyTagsError,
  VersionConflictError,
} from './resource-errors.ts';
export type { Page, Resource } from './resource-store.ts';
export { ResourceStore } from './resource-store.ts';
export { forgetRows, Retention, type RetentionRule } from './retention.ts';
export { keepStatistics } from './statistics.ts';
export { storageMigrations } from './tables.ts';
export { vacuum } from './vacuum.ts';
