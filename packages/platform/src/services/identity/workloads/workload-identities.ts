import { type control, errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import {
  type Database,
  type Executor,
  MissingResourceError,
  nameTaken,
  type Page,
  type Resource,
  ResourceStore,
  timesOf,
} from '../../../kernel/storage/index.ts';
import { list, object, stored, text } from '../../../kernel/stored-shape.ts';
import { WORKLOAD_IDENTITY_KIND, type WorkloadIdentity, workloadIdentityArn } from './workload-identity.ts';

export interface WorkloadIdentitiesDeps {
  database: Database;
  clock: Clock;
  region: string;
}

/** A resource that has a workload identity of its own. */
export interface WorkloadOwner {
  arn: string;
  accountId: string;
  /** Also the name of its identity. */
  id: string;
}

type Kept = Pick<WorkloadIdentity, 'allowedResourceOauth2ReturnUrls'>;

/** The workload identities of accounts. Callers make some of them. Others belong to a resource, such as a runtime, and are its children. */
export class WorkloadIdentities {
  readonly #region: string;
  readonly #database: Database;
  readonly #store: ResourceStore<Kept>;

  constructor({ database, clock, region }: WorkloadIdentitiesDeps) {
    this.#region = region;
    this.#database = database;
    this.#store = new ResourceStore<Kept>({
      executor: database,
      clock,
      kind: WORKLOAD_IDENTITY_KIND,
      ...stored<Kept>(object({ allowedResourceOauth2ReturnUrls: list(text) })),
    });
  }

  arnOf(accountId: string, name: string): string {
    return workloadIdentityArn({ region: this.#region, accountId }, name);
  }

  /** CreateWorkloadIdentity. Rejects with ConflictException when the name is taken. */
  async create(call: control.CreateWorkloadIdentityRequest, accountId: string): Promise<WorkloadIdentity> {
    const { name, allowedResourceOauth2ReturnUrls = [], tags = {} } = call;
    const arn = this.arnOf(accountId, name);
    try {
      return identityFrom(
        await this.#store.create({ arn, accountId, id: name, name, data: { allowedResourceOauth2ReturnUrls }, tags }),
      );
    } catch (error) {
      throw nameTaken(error, 'A workload identity', 'Delete it, or choose another name.');
    }
  }

  /** Makes the identity of a resource in the transaction that makes the resource; who removes the resource's children removes it. */
  async link({ arn, accountId, id }: WorkloadOwner, tx: Executor): Promise<void> {
    const data: Kept = { allowedResourceOauth2ReturnUrls: [] };
    await this.#store.within(tx).create({ arn: this.arnOf(accountId, id), accountId, id, name: id, parent: arn, data });
  }

  /** Undefined when there is none of this name. */
  async find(accountId: string, name: string): Promise<WorkloadIdentity | undefined> {
    const found = await this.#store.get(this.arnOf(accountId, name));
    return found && identityFrom(found);
  }

  /** The same; rejects with ResourceNotFoundException. */
  async get(accountId: string, name: string): Promise<WorkloadIdentity> {
    const found = await this.find(accountId, name);
    if (found) return found;
    throw missing(name);
  }

  async callbackUrl(accountId: string, name: string): Promise<string | undefined> {
    const found = await this.find(accountId, name);
    return found?.allowedResourceOauth2ReturnUrls.find((url) => /^[\x21-\x7e]+$/.test(url));
  }

  /** UpdateWorkloadIdentity: return addresses are replaced as a whole, and kept when none are given. */
  async update(call: control.UpdateWorkloadIdentityRequest, accountId: string): Promise<WorkloadIdentity> {
    const { name, allowedResourceOauth2ReturnUrls: wanted } = call;
    try {
      const changed = await this.#store.modify(this.arnOf(accountId, name), ({ data }) => ({
        allowedResourceOauth2ReturnUrls: wanted ?? data.allowedResourceOauth2ReturnUrls,
      }));
      return identityFrom(changed);
    } catch (error) {
      throw error instanceof MissingResourceError ? missing(name) : error;
    }
  }

  /** In the order of creation; `after` is `next` of the page before. */
  async list(
    accountId: string,
    { limit, after }: { limit: number; after: string | undefined },
  ): Promise<Page<WorkloadIdentity>> {
    const { items, ...next } = await this.#store.list({ accountId, limit, ...(after === undefined ? {} : { after }) });
    return { items: items.map(identityFrom), ...next };
  }

  /** DeleteWorkloadIdentity. `beside` runs in the same transaction. An identity that belongs to a resource is deleted only with the resource. Otherwise this throws ValidationException with the reason ResourceConflict, because the model has no ConflictException for the operation. */
  async delete(
    accountId: string,
    name: string,
    beside: (tx: Executor) => Promise<void> = async () => undefined,
  ): Promise<void> {
    const { arn, owner } = await this.get(accountId, name);
    if (owner !== undefined)
      throw errors.validation(`The workload identity ${name} belongs to ${owner}.`, {
        reason: 'ResourceConflict',
        remedy: 'It is deleted together with that.',
      });
    await this.#database.transaction(async (tx) => {
      await this.#store.within(tx).delete(arn);
      await beside(tx);
    });
  }
}

function missing(name: string): Error {
  return errors.resourceNotFound(`There is no workload identity ${name} in this account.`, {
    remedy: 'ListWorkloadIdentities lists those that exist.',
  });
}

function identityFrom(resource: Resource<Kept>): WorkloadIdentity {
  const { arn, name, parent, data } = resource;
  return { arn, name, owner: parent === '' ? undefined : parent, ...data, ...timesOf(resource) };
}
