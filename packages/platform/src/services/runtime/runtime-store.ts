import type { WantedPage } from '@agentplatform/contract';
import type { Runtime, RuntimeEndpoint, RuntimeVersion } from './runtime.ts';

export interface Page<T> {
  items: T[];
  /** Where the next page begins; undefined on the last. */
  next: string | undefined;
}

/** A runtime with everything that hangs on it. */
export interface RuntimeFamily {
  runtime: Runtime;
  versions: RuntimeVersion[];
  endpoints: RuntimeEndpoint[];
}

/** Runtimes, versions and endpoints as kept in the database. */
export interface RuntimeStore {
  /** All or nothing. Rejects with `DuplicateResourceError` when the account has a runtime of that name. */
  createRuntime(family: RuntimeFamily, tags: Record<string, string>): Promise<void>;
  /** All or nothing: the new version and the runtime's new counter. Rejects with `VersionConflictError` when another update was faster. */
  addVersion(runtime: Runtime, version: RuntimeVersion): Promise<void>;
  saveRuntime(runtime: Runtime): Promise<void>;
  /** All or nothing: the version's end state and what DEFAULT becomes by it, so that nobody sees one without the other. */
  settleVersion(version: RuntimeVersion, follow: (current: RuntimeEndpoint) => RuntimeEndpoint): Promise<void>;
  createEndpoint(endpoint: RuntimeEndpoint, tags: Record<string, string>): Promise<void>;
  saveEndpoint(endpoint: RuntimeEndpoint): Promise<void>;
  deleteVersion(version: RuntimeVersion): Promise<void>;
  deleteEndpoint(endpoint: RuntimeEndpoint): Promise<void>;
  deleteRuntime(runtime: Runtime): Promise<void>;
  load(runtimeId: string): Promise<RuntimeFamily | undefined>;
  list(accountId: string, page: WantedPage<string>): Promise<Page<Runtime>>;
  /** Digests of the images that any version may still start sandboxes from. */
  imageDigests(): Promise<string[]>;
  /** Runtimes with a version or endpoint that was being prepared or deleted when the server ended. */
  unfinished(): Promise<string[]>;
}
