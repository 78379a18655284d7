import { isDeepStrictEqual } from 'node:util';
import { eachAtOnce } from '../../kernel/each-at-once.ts';
import type { Change, Changes } from '../../kernel/storage/index.ts';
import { DEFAULT_ENDPOINT, type Runtime, type RuntimeEndpoint, type RuntimeVersion } from './runtime.ts';
import type { RuntimeFamily, RuntimeStore } from './runtime-store.ts';

/** What an invocation needs to know of the version that it reaches. */
export interface InvocationTarget {
  runtime: Runtime;
  endpoint: RuntimeEndpoint;
  version: RuntimeVersion;
  /** Lower-case names; worked out once per version, not per call. */
  headerAllowlist: readonly string[];
  /** Where agents may have users sent back to who have consented. */
  callbackUrl: string | undefined;
}

/** What is known of a runtime and of its workload identity. */
interface Known extends RuntimeFamily {
  callbackUrl: string | undefined;
}

export interface RuntimeCatalogueDeps {
  store: Pick<RuntimeStore, 'load'>;
  callbackUrl(runtime: Runtime): Promise<string | undefined>;
  changes: Changes;
  /** The topics of what a runtime and all that hangs on it are made of. */
  topics: readonly string[];
  /** The id of the runtime that a change is of. */
  runtimeOf(change: Change): string;
  /** Told of every known runtime that is another now, or gone. */
  onChange(runtimeId: string, arn: string): void;
}

/** Runtimes that are read anew together when any may have changed. */
const RELOADS = 4;

/**
 * Runtimes in memory, loaded at first use and replaced whole when the change feed tells of a write, so that an invocation of a known runtime
 * touches no database.
 */
export class RuntimeCatalogue {
  readonly #deps: RuntimeCatalogueDeps;
  readonly #families = new Map<string, Known>();
  readonly #targets = new Map<string, InvocationTarget>();
  readonly #loading = new Map<string, Promise<Known | undefined>>();

  constructor(deps: RuntimeCatalogueDeps) {
    this.#deps = deps;
    deps.changes.subscribe(deps.topics, (changes) => this.#take(changes));
  }

  /** The runtime with its versions and endpoints; undefined when there is none. */
  async get(runtimeId: string): Promise<Known | undefined> {
    const known = this.#families.get(runtimeId);
    if (known) return known;
    const under = this.#loading.get(runtimeId);
    if (under) return under;
    const loading = this.#load(runtimeId);
    this.#loading.set(runtimeId, loading);
    try {
      const family = await loading;
      // A write during the load took this promise away: what it brings may be old, so it is not kept.
      if (family && this.#loading.get(runtimeId) === loading) this.#families.set(runtimeId, family);
      return family;
    } finally {
      if (this.#loading.get(runtimeId) === loading) this.#loading.delete(runtimeId);
    }
  }

  /** The target of a call when it is known without a look into the database. Throws what `changes.need` throws. */
  peek(runtimeId: string, qualifier: string): InvocationTarget | undefined {
    this.#deps.changes.need();
    return this.#targets.get(`${runtimeId}/${qualifier}`);
  }

  /** The target of a call; undefined when runtime or endpoint is unknown, or no version was ever ready. */
  async target(runtimeId: string, qualifier: string = DEFAULT_ENDPOINT): Promise<InvocationTarget | undefined> {
    const known = this.peek(runtimeId, qualifier);
    if (known) return known;
    const family = await this.get(runtimeId);
    if (!family || family.runtime.deleting) return undefined;
    const endpoint = family.endpoints.find((e) => e.name === qualifier);
    const version = family.versions.find((v) => v.version === endpoint?.liveVersion);
    if (!endpoint || !version) return undefined;
    const allowlist = version.definition.requestHeaderConfiguration?.requestHeaderAllowlist ?? [];
    const target = {
      runtime: family.runtime,
      endpoint,
      version,
      headerAllowlist: allowlist.map((name) => name.toLowerCase()),
      callbackUrl: family.callbackUrl,
    };
    if (this.#families.get(runtimeId) === family) this.#targets.set(`${runtimeId}/${qualifier}`, target);
    return target;
  }

  async #take(changes: readonly Change[] | 'all'): Promise<void> {
    const changed =
      changes === 'all'
        ? [...this.#families.keys(), ...this.#loading.keys()]
        : changes.map((change) => this.#deps.runtimeOf(change));
    await eachAtOnce(RELOADS, [...new Set(changed)], undefined, (runtimeId) => this.#reload(runtimeId));
  }

  /** Invocations go on with what was known until the new is there. */
  async #reload(runtimeId: string): Promise<void> {
    this.#loading.delete(runtimeId);
    const known = this.#families.get(runtimeId);
    if (!known) return;
    const family = await this.#load(runtimeId);
    if (isDeepStrictEqual(family, known)) return;
    if (family) this.#families.set(runtimeId, family);
    else this.#families.delete(runtimeId);
    for (const key of this.#targets.keys()) if (key.startsWith(`${runtimeId}/`)) this.#targets.delete(key);
    this.#deps.onChange(runtimeId, known.runtime.arn);
  }

  async #load(runtimeId: string): Promise<Known | undefined> {
    const { store, callbackUrl } = this.#deps;
    const family = await store.load(runtimeId);
    return family && { ...family, callbackUrl: await callbackUrl(family.runtime) };
  }
}
