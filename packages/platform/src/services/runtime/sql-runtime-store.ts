import { parseArn } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import { type Database, type Executor, ResourceStore, VersionConflictError } from '../../kernel/storage/index.ts';
import { DEFAULT_ENDPOINT, endpointArn, type Runtime, type RuntimeEndpoint, type RuntimeVersion } from './runtime.ts';
import type { RuntimeFamily, RuntimeStore } from './runtime-store.ts';
import { storedEndpoint, storedRuntime, storedVersion } from './stored-runtime.ts';

export const RUNTIME_KIND = 'agent-runtime';
export const VERSION_KIND = 'agent-runtime-version';
export const ENDPOINT_KIND = 'agent-runtime-endpoint';

/** More than any quota allows, so that one read brings all that hangs on a runtime. */
const ALL = 100_000;

/**
 * The runtimes in the table `resources`: one row each for runtime, version and endpoint, the runtime being the others' parent. `others`
 * add what else a runtime has from its beginning to its end, as a child of it, and remove what such a child would leave behind.
 */
export function createSqlRuntimeStore(
  database: Database,
  clock: Clock,
  others: {
    link(runtime: Runtime, tx: Executor): Promise<void>;
    unlink(runtime: Runtime, tx: Executor): Promise<void>;
  },
): RuntimeStore {
  const on = (executor: Executor) => ({
    runtimes: new ResourceStore({ executor, clock, kind: RUNTIME_KIND, ...storedRuntime }),
    versions: new ResourceStore({ executor, clock, kind: VERSION_KIND, ...storedVersion }),
    endpoints: new ResourceStore({ executor, clock, kind: ENDPOINT_KIND, ...storedEndpoint }),
  });
  const { runtimes, versions, endpoints } = on(database);

  return {
    createRuntime: (family, tags) =>
      database.transaction(async (tx) => {
        const stores = on(tx);
        const { runtime } = family;
        await stores.runtimes.create({ ...identity(runtime), name: runtime.name, data: runtime, tags });
        for (const version of family.versions) await stores.versions.create(versionRow(runtime.accountId, version));
        for (const endpoint of family.endpoints)
          await stores.endpoints.create(endpointRow(runtime.accountId, endpoint, {}));
        await others.link(runtime, tx);
      }),
    addVersion: (runtime, version) =>
      database.transaction(async (tx) => {
        const stores = on(tx);
        await stores.runtimes.modify(runtime.arn, ({ data, version: at }) => {
          if (data.latestVersion !== runtime.latestVersion - 1) throw new VersionConflictError(runtime.arn, at);
          return runtime;
        });
        await stores.versions.create(versionRow(runtime.accountId, version));
      }),
    saveRuntime: async (runtime) => void (await runtimes.modify(runtime.arn, () => runtime)),
    settleVersion: (version, follow) =>
      database.transaction(async (tx) => {
        const stores = on(tx);
        await stores.versions.modify(versionArn(version), () => version);
        await stores.endpoints.modify(endpointArn(version.runtimeArn, DEFAULT_ENDPOINT), ({ data }) => follow(data));
      }),
    saveEndpoint: async (endpoint) => void (await endpoints.modify(endpoint.arn, () => endpoint)),
    createEndpoint: async (endpoint, tags) =>
      void (await endpoints.create(endpointRow(accountOf(endpoint.runtimeArn), endpoint, tags))),
    deleteVersion: async (version) => void (await versions.delete(versionArn(version))),
    deleteEndpoint: async (endpoint) => void (await endpoints.delete(endpoint.arn)),
    deleteRuntime: (runtime) =>
      database.transaction(async (tx) => {
        await others.unlink(runtime, tx);
        await tx.execute('DELETE FROM resources WHERE account_id = $1 AND parent = $2', [
          runtime.accountId,
          runtime.arn,
        ]);
        await on(tx).runtimes.delete(runtime.arn);
      }),
    async load(runtimeId) {
      const [found] = await database.query<{ arn: string }>('SELECT arn FROM resources WHERE kind = $1 AND id = $2', [
        RUNTIME_KIND,
        runtimeId,
      ]);
      const runtime = found && (await runtimes.get(found.arn));
      if (!runtime) return undefined;
      const of = { accountId: runtime.accountId, parent: runtime.arn, limit: ALL };
      const [v, e] = await Promise.all([versions.list(of), endpoints.list(of)]);
      return {
        runtime: runtime.data,
        versions: v.items.map((i) => i.data),
        endpoints: e.items.map((i) => i.data),
      } satisfies RuntimeFamily;
    },
    async list(accountId, { limit, after }) {
      const page = await runtimes.list({ accountId, limit, ...(after === undefined ? {} : { after }) });
      return { items: page.items.map((i) => i.data), next: page.next };
    },
    async imageDigests() {
      const rows = await database.query<{ digest: string }>(
        `SELECT DISTINCT data->>'imageDigest' AS digest FROM resources WHERE kind = $1 AND data->>'imageDigest' IS NOT NULL`,
        [VERSION_KIND],
      );
      return rows.map((row) => row.digest);
    },
    async unfinished() {
      const rows = await database.query<{ id: string }>(
        `SELECT r.id FROM resources r WHERE r.kind = $1 AND (r.data->>'deleting' = 'true' OR EXISTS (
           SELECT 1 FROM resources v WHERE v.kind = $2 AND v.parent = r.arn AND v.data->>'status' IN ('CREATING', 'UPDATING')))`,
        [RUNTIME_KIND, VERSION_KIND],
      );
      return rows.map((row) => row.id);
    },
  };
}

function identity({ arn, accountId, id }: Runtime): { arn: string; accountId: string; id: string } {
  return { arn, accountId, id };
}

function versionArn(version: RuntimeVersion): string {
  return `${version.runtimeArn}/version/${version.version}`;
}

function versionRow(accountId: string, version: RuntimeVersion) {
  const name = String(version.version);
  return { arn: versionArn(version), accountId, id: name, name, parent: version.runtimeArn, data: version };
}

function endpointRow(accountId: string, endpoint: RuntimeEndpoint, tags: Record<string, string>) {
  return {
    arn: endpoint.arn,
    accountId,
    id: endpoint.id,
    name: endpoint.name,
    parent: endpoint.runtimeArn,
    data: endpoint,
    tags,
  };
}

function accountOf(arn: string): string {
  return parseArn(arn)?.accountId ?? '';
}
