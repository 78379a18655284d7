import { parseArn } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import {
  type Changes,
  type Database,
  type Executor,
  Known,
  type Page,
  ResourceStore,
  VersionConflictError,
} from '../../../kernel/storage/index.ts';
import {
  DEFAULT_ENDPOINT,
  endpointArn,
  HARNESS_ENDPOINT_KIND,
  HARNESS_KIND,
  HARNESS_VERSION_KIND,
  type Harness,
  type HarnessEndpoint,
  type HarnessFamily,
  type HarnessVersion,
  harnessArnOf,
} from './harness.ts';
import { storedEndpoint, storedHarness, storedVersion } from './stored-harness.ts';

export interface HarnessStoreDeps {
  database: Database;
  changes: Changes;
  clock: Clock;
}

/** Of an account. */
const MOST_HARNESSES = 1_000;
/** More than any quota allows, so that one read brings all that hangs on a harness. */
const ALL = 100_000;
/** Families in memory, those that were used last. */
const KNOWN = 5_000;

/** Harnesses in the table `resources`: one row each for harness, version and endpoint, the harness being the others' parent. */
export class HarnessStore {
  readonly #deps: HarnessStoreDeps;
  readonly #known: Known<HarnessFamily>;

  constructor(deps: HarnessStoreDeps) {
    this.#deps = deps;
    const kinds = [HARNESS_KIND, HARNESS_VERSION_KIND, HARNESS_ENDPOINT_KIND];
    this.#known = new Known(kinds, deps.changes, KNOWN, harnessArnOf);
  }

  /** The harness with its versions and endpoints, from memory where it was read before; undefined when there is none. */
  family(arn: string): Promise<HarnessFamily | undefined> {
    return this.#known.get(arn, () => this.load(arn));
  }

  /** The same as it is in the database now. */
  async load(arn: string): Promise<HarnessFamily | undefined> {
    const { harnesses, versions, endpoints } = this.#on(this.#deps.database);
    const harness = await harnesses.get(arn);
    if (!harness) return undefined;
    const of = { accountId: harness.accountId, parent: arn, limit: ALL };
    const [v, e] = await Promise.all([versions.list(of), endpoints.list(of)]);
    return { harness: harness.data, versions: v.items.map((i) => i.data), endpoints: e.items.map((i) => i.data) };
  }

  /** In the order of creation; `after` is `next` of the page before. */
  async list(
    accountId: string,
    { limit, after }: { limit: number; after: string | undefined },
  ): Promise<Page<Harness>> {
    const { harnesses } = this.#on(this.#deps.database);
    const page = await harnesses.list({ accountId, limit, ...(after === undefined ? {} : { after }) });
    return { ...page, items: page.items.map((i) => i.data) };
  }

  /** Rejects with `DuplicateResourceError` when the name is taken. */
  async create({ harness, versions, endpoints }: HarnessFamily, tags: Record<string, string>): Promise<void> {
    await this.#deps.database.transaction(async (tx) => {
      const stores = this.#on(tx);
      const { arn, accountId, id, name } = harness;
      await stores.harnesses.create({ arn, accountId, id, name, data: harness, tags });
      for (const version of versions) await stores.versions.create(versionRow(accountId, version));
      for (const endpoint of endpoints) await stores.endpoints.create(endpointRow(endpoint, {}));
    });
  }

  /** Rejects with `VersionConflictError` when another update was faster. */
  async addVersion(harness: Harness, version: HarnessVersion): Promise<void> {
    await this.#deps.database.transaction(async (tx) => {
      const stores = this.#on(tx);
      await stores.harnesses.modify(harness.arn, ({ data, version: at }) => {
        if (data.latestVersion !== harness.latestVersion - 1) throw new VersionConflictError(harness.arn, at);
        return harness;
      });
      await stores.versions.create(versionRow(harness.accountId, version));
    });
  }

  /** Moves a version to its end state, and `DEFAULT` as `follow` says. */
  async settle(version: HarnessVersion, follow: (endpoint: HarnessEndpoint) => HarnessEndpoint): Promise<void> {
    await this.#deps.database.transaction(async (tx) => {
      const stores = this.#on(tx);
      await stores.versions.modify(versionArn(version), () => version);
      await stores.endpoints.modify(endpointArn(version.harnessArn, DEFAULT_ENDPOINT), ({ data }) => follow(data));
    });
  }

  async save(harness: Harness): Promise<void> {
    await this.#on(this.#deps.database).harnesses.modify(harness.arn, () => harness);
  }

  /** Rejects with `DuplicateResourceError` when the name is taken. */
  async createEndpoint(endpoint: HarnessEndpoint, tags: Record<string, string>): Promise<void> {
    await this.#on(this.#deps.database).endpoints.create(endpointRow(endpoint, tags));
  }

  async saveEndpoint(endpoint: HarnessEndpoint): Promise<void> {
    await this.#on(this.#deps.database).endpoints.modify(endpoint.arn, () => endpoint);
  }

  async deleteEndpoint({ arn }: HarnessEndpoint): Promise<void> {
    await this.#on(this.#deps.database).endpoints.delete(arn);
  }

  /** With its versions, endpoints and conversations. */
  async delete({ arn, accountId }: Harness): Promise<void> {
    await this.#deps.database.transaction(async (tx) => {
      await tx.execute('DELETE FROM harness_conversations WHERE harness_arn = $1', [arn]);
      await tx.execute('DELETE FROM resources WHERE account_id = $1 AND parent = $2', [accountId, arn]);
      await this.#on(tx).harnesses.delete(arn);
    });
  }

  /** ARNs of those that are being made, changed or deleted. */
  async unfinished(): Promise<string[]> {
    const rows = await this.#deps.database.query<{ arn: string }>(
      `SELECT r.arn FROM resources r WHERE r.kind = $1 AND (r.data->>'deleting' = 'true' OR EXISTS (
         SELECT 1 FROM resources v WHERE v.kind = $2 AND v.parent = r.arn AND v.data->>'status' IN ('CREATING', 'UPDATING')))`,
      [HARNESS_KIND, HARNESS_VERSION_KIND],
    );
    return rows.map(({ arn }) => arn);
  }

  #on(executor: Executor) {
    const { clock } = this.#deps;
    return {
      harnesses: new ResourceStore({ executor, clock, kind: HARNESS_KIND, most: MOST_HARNESSES, ...storedHarness }),
      versions: new ResourceStore({ executor, clock, kind: HARNESS_VERSION_KIND, ...storedVersion }),
      endpoints: new ResourceStore({ executor, clock, kind: HARNESS_ENDPOINT_KIND, ...storedEndpoint }),
    };
  }
}

function versionArn({ harnessArn, version }: HarnessVersion): string {
  return `${harnessArn}/version/${version}`;
}

function versionRow(accountId: string, version: HarnessVersion) {
  const name = String(version.version);
  return { arn: versionArn(version), accountId, id: name, name, parent: version.harnessArn, data: version };
}

function endpointRow(endpoint: HarnessEndpoint, tags: Record<string, string>) {
  const { arn, name, harnessArn: parent } = endpoint;
  return { arn, accountId: parseArn(arn)?.accountId ?? '', id: name, name, parent, data: endpoint, tags };
}
