import { type control, errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import { DuplicateResourceError } from '../../../kernel/storage/index.ts';
import { DEFAULT_ENDPOINT, endpointArn, type Harness, type HarnessEndpoint, type HarnessFamily } from './harness.ts';
import type { HarnessStore } from './harness-store.ts';
import type { Harnesses } from './harnesses.ts';

export interface HarnessEndpointsDeps {
  harnesses: Pick<Harnesses, 'family'>;
  store: Pick<HarnessStore, 'createEndpoint' | 'saveEndpoint' | 'deleteEndpoint'>;
  clock: Clock;
  quotas: { endpointsPerRuntime: number };
}

/** An endpoint and whose it is. */
export interface EndpointOfHarness {
  harness: Harness;
  endpoint: HarnessEndpoint;
}

/** Endpoints of a harness: names that pin one version. `DEFAULT` follows by itself and cannot be made, pinned or removed. */
export class HarnessEndpoints {
  readonly #deps: HarnessEndpointsDeps;

  constructor(deps: HarnessEndpointsDeps) {
    this.#deps = deps;
  }

  async create(call: control.CreateHarnessEndpointRequest, accountId: string): Promise<EndpointOfHarness> {
    const { harnesses, store, clock, quotas } = this.#deps;
    const { harnessId, endpointName: name, description, tags = {} } = call;
    const family = await harnesses.family(harnessId, accountId);
    const { harness, endpoints } = family;
    if (endpoints.length >= quotas.endpointsPerRuntime)
      throw errors.quota(`${harnessId} has ${endpoints.length} endpoints, which is the limit.`, {
        remedy: 'Delete one that is not used, or raise quotas.endpointsPerRuntime.',
      });
    const version = readyVersion(family, call.targetVersion);
    const now = clock.now();
    const endpoint: HarnessEndpoint = {
      ...{ arn: endpointArn(harness.arn, name), harnessArn: harness.arn, name, description },
      ...{ liveVersion: version, targetVersion: version, status: 'READY', failureReason: undefined },
      ...{ createdAt: now, updatedAt: now },
    };
    try {
      await store.createEndpoint(endpoint, tags);
    } catch (error) {
      if (!(error instanceof DuplicateResourceError)) throw error;
      throw errors.conflict(`${harnessId} already has an endpoint ${name}.`, {
        remedy: 'Move it with UpdateHarnessEndpoint.',
        cause: error,
      });
    }
    return { harness, endpoint };
  }

  async update(call: control.UpdateHarnessEndpointRequest, accountId: string): Promise<EndpointOfHarness> {
    const { store, clock } = this.#deps;
    const { family, endpoint } = await this.#find(call.harnessId, call.endpointName, accountId);
    if (endpoint.name === DEFAULT_ENDPOINT && call.targetVersion !== undefined)
      throw errors.conflict(`${DEFAULT_ENDPOINT} always follows the newest version.`, {
        remedy: 'Make an endpoint of your own to pin a version.',
      });
    const version =
      call.targetVersion === undefined ? endpoint.targetVersion : readyVersion(family, call.targetVersion);
    const pinned = endpoint.name === DEFAULT_ENDPOINT ? {} : { liveVersion: version, targetVersion: version };
    const description = call.description ?? endpoint.description;
    const changed = { ...endpoint, ...pinned, description, updatedAt: clock.now() };
    await store.saveEndpoint(changed);
    return { harness: family.harness, endpoint: changed };
  }

  async get(harnessId: string, name: string, accountId: string): Promise<EndpointOfHarness> {
    const { family, endpoint } = await this.#find(harnessId, name, accountId);
    return { harness: family.harness, endpoint };
  }

  /** By name; `after` is the last name of the page before. */
  async list(
    harnessId: string,
    accountId: string,
    { limit, after }: { limit: number; after: string | undefined },
  ): Promise<{ items: EndpointOfHarness[]; next: string | undefined }> {
    const { harness, endpoints } = await this.#deps.harnesses.family(harnessId, accountId);
    const rest = endpoints
      .filter(({ name }) => after === undefined || name > after)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const items = rest.slice(0, limit).map((endpoint) => ({ harness, endpoint }));
    return { items, next: rest.length > limit ? items.at(-1)?.endpoint.name : undefined };
  }

  async delete(harnessId: string, name: string, accountId: string): Promise<EndpointOfHarness> {
    const { family, endpoint } = await this.#find(harnessId, name, accountId);
    if (name === DEFAULT_ENDPOINT)
      throw errors.conflict(`${DEFAULT_ENDPOINT} always exists.`, {
        remedy: 'DeleteHarness removes it with the harness.',
      });
    await this.#deps.store.deleteEndpoint(endpoint);
    return { harness: family.harness, endpoint: { ...endpoint, status: 'DELETING' } };
  }

  async #find(
    harnessId: string,
    name: string,
    accountId: string,
  ): Promise<{ family: HarnessFamily; endpoint: HarnessEndpoint }> {
    const family = await this.#deps.harnesses.family(harnessId, accountId);
    const endpoint = family.endpoints.find((one) => one.name === name);
    if (endpoint) return { family, endpoint };
    throw errors.resourceNotFound(`${harnessId} has no endpoint ${name}.`, {
      remedy: 'ListHarnessEndpoints lists those that exist.',
    });
  }
}

/** The number of a version that can be invoked: the one named, or the newest. */
function readyVersion({ harness, versions }: HarnessFamily, wanted: string | undefined): number {
  const number = wanted === undefined ? harness.latestVersion : Number(wanted);
  const version = versions.find((one) => one.version === number);
  if (!version)
    throw errors.resourceNotFound(`${harness.id} has no version ${number}.`, {
      remedy: 'ListHarnessVersions lists those that exist.',
    });
  if (version.status === 'READY') return number;
  throw errors.conflict(`Version ${number} is ${version.status}, not READY.`, {
    remedy: 'Wait until it is, or name another version.',
  });
}
