import { type control, errors, type WantedPage } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import { DuplicateResourceError } from '../../kernel/storage/index.ts';
import { DEFAULT_ENDPOINT, endpointArn, type Runtime, type RuntimeEndpoint } from './runtime.ts';
import type { Page, RuntimeFamily, RuntimeStore } from './runtime-store.ts';
import type { Runtimes } from './runtimes.ts';

export interface EndpointsDeps {
  runtimes: Runtimes;
  store: RuntimeStore;
  clock: Clock;
  quotas: { endpointsPerRuntime: number };
}

/** Endpoints of a runtime: names that pin one version. `DEFAULT` follows by itself and cannot be made, pinned or removed. */
export class Endpoints {
  readonly #deps: EndpointsDeps;

  constructor(deps: EndpointsDeps) {
    this.#deps = deps;
  }

  async create(
    call: control.CreateAgentRuntimeEndpointRequest,
    accountId: string,
  ): Promise<{ endpoint: RuntimeEndpoint; runtime: Runtime }> {
    const { runtimes, store, clock, quotas } = this.#deps;
    const family = await runtimes.family(call.agentRuntimeId, accountId);
    if (family.endpoints.length >= quotas.endpointsPerRuntime) {
      throw errors.quota(`${call.agentRuntimeId} has ${family.endpoints.length} endpoints, which is the limit.`, {
        remedy: 'Delete one that is not used, or raise quotas.endpointsPerRuntime.',
      });
    }
    const version = readyVersion(family, call.agentRuntimeVersion);
    const now = clock.now();
    const endpoint: RuntimeEndpoint = {
      arn: endpointArn(family.runtime.arn, call.name),
      id: call.name,
      runtimeArn: family.runtime.arn,
      name: call.name,
      description: call.description,
      liveVersion: version,
      targetVersion: version,
      status: 'READY',
      failureReason: undefined,
      createdAt: now,
      updatedAt: now,
    };
    try {
      await store.createEndpoint(endpoint, call.tags ?? {});
    } catch (error) {
      if (!(error instanceof DuplicateResourceError)) throw error;
      throw errors.conflict(`${call.agentRuntimeId} already has an endpoint ${call.name}.`, {
        remedy: 'Move it with UpdateAgentRuntimeEndpoint.',
        cause: error,
      });
    }
    return { endpoint, runtime: family.runtime };
  }

  async update(call: control.UpdateAgentRuntimeEndpointRequest, accountId: string): Promise<RuntimeEndpoint> {
    const { store, clock } = this.#deps;
    const { family, endpoint } = await this.#find(call.agentRuntimeId, call.endpointName, accountId);
    if (endpoint.name === DEFAULT_ENDPOINT && call.agentRuntimeVersion !== undefined) {
      throw errors.conflict(`${DEFAULT_ENDPOINT} always follows the newest version.`, {
        remedy: 'Make an endpoint of your own to pin a version.',
      });
    }
    const version =
      call.agentRuntimeVersion === undefined ? endpoint.targetVersion : readyVersion(family, call.agentRuntimeVersion);
    const changed: RuntimeEndpoint = {
      ...endpoint,
      ...(endpoint.name === DEFAULT_ENDPOINT ? {} : { liveVersion: version, targetVersion: version }),
      description: call.description ?? endpoint.description,
      updatedAt: clock.now(),
    };
    await store.saveEndpoint(changed);
    return changed;
  }

  async get(runtimeId: string, name: string, accountId: string): Promise<RuntimeEndpoint> {
    return (await this.#find(runtimeId, name, accountId)).endpoint;
  }

  /** By name; `after` is the last name of the page before. */
  async list(runtimeId: string, accountId: string, page: WantedPage<string>): Promise<Page<RuntimeEndpoint>> {
    const { endpoints } = await this.#deps.runtimes.family(runtimeId, accountId);
    const rest = endpoints
      .filter((e) => page.after === undefined || e.name > page.after)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const items = rest.slice(0, page.limit);
    return { items, next: rest.length > page.limit ? items.at(-1)?.name : undefined };
  }

  async delete(runtimeId: string, name: string, accountId: string): Promise<void> {
    const { endpoint } = await this.#find(runtimeId, name, accountId);
    if (name === DEFAULT_ENDPOINT) {
      throw errors.conflict(`${DEFAULT_ENDPOINT} always exists.`, {
        remedy: 'DeleteAgentRuntime removes it with the runtime.',
      });
    }
    await this.#deps.store.deleteEndpoint(endpoint);
  }

  async #find(
    runtimeId: string,
    name: string,
    accountId: string,
  ): Promise<{ family: RuntimeFamily; endpoint: RuntimeEndpoint }> {
    const family = await this.#deps.runtimes.family(runtimeId, accountId);
    const endpoint = family.endpoints.find((e) => e.name === name);
    if (!endpoint)
      throw errors.resourceNotFound(`${runtimeId} has no endpoint ${name}.`, {
        remedy: 'ListAgentRuntimeEndpoints lists those that exist.',
      });
    return { family, endpoint };
  }
}

/** The number of a version that can be invoked: the one named, or the newest. */
function readyVersion(family: RuntimeFamily, wanted: string | undefined): number {
  const number = wanted === undefined ? family.runtime.latestVersion : Number(wanted);
  const version = family.versions.find((v) => v.version === number);
  if (!version) throw errors.resourceNotFound(`${family.runtime.id} has no version ${number}.`);
  if (version.status !== 'READY')
    throw errors.conflict(`Version ${number} is ${version.status}, not READY.`, {
      remedy: 'Wait until it is, or name another version.',
    });
  return number;
}
