import { type control, errors, resourceArn } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { JobQueue } from '../../../kernel/jobs/index.ts';
import { refuseUnserved } from '../../../kernel/served-fields.ts';
import {
  type Database,
  DuplicateResourceError,
  type Executor,
  MissingResourceError,
  type Page,
  ResourceStore,
} from '../../../kernel/storage/index.ts';
import { holdEngine } from '../engines/engines.ts';
import type { Engine } from '../engines/policy-engine.ts';
import { POLICY_FIELDS } from '../policy-fields.ts';
import { POLICY_KIND, type Policy, type PolicyData, type PolicyText, policyFrom, storedPolicy } from './policy.ts';

export interface PoliciesDeps {
  database: Database;
  clock: Clock;
  region: string;
  /** The text that a generation has made. Rejects with ResourceNotFoundException and ValidationException. */
  generated(engine: Engine, named: control.PolicyGenerationDetails): Promise<PolicyText>;
  newIdSuffix(): string;
}

/** One revision of a policy, to be checked. */
export interface Checking {
  arn: string;
  revision: number;
}

/** Of an engine; all are in memory while a gateway is attached to it. */
export const MOST_POLICIES = 10_000;

/** The policies of engines. Each is checked by a job before it decides; until a change is checked, what was there before does. */
export class Policies {
  readonly #deps: PoliciesDeps;
  readonly store: ResourceStore<PolicyData>;
  #queue: JobQueue<Checking> | undefined;

  constructor(deps: PoliciesDeps) {
    this.#deps = deps;
    this.store = new ResourceStore<PolicyData>({
      ...{ executor: deps.database, clock: deps.clock, kind: POLICY_KIND, most: MOST_POLICIES },
      ...storedPolicy,
    });
  }

  /** Who checks them. */
  checkBy(queue: JobQueue<Checking>): void {
    this.#queue = queue;
  }

  arnOf({ accountId, id }: Pick<Engine, 'accountId' | 'id'>, policyId: string): string {
    return resourceArn('policy', { region: this.#deps.region, accountId }, id, policyId);
  }

  /** CREATING until it is checked. Rejects with ConflictException when the name is taken, and with ValidationException. */
  async create(engine: Engine, input: control.CreatePolicyRequest): Promise<Policy> {
    refuseUnserved(input, POLICY_FIELDS);
    const { name, description, validationMode = 'FAIL_ON_ANY_FINDINGS', enforcementMode = 'ACTIVE' } = input;
    const wanted = await this.#textOf(engine, input.definition);
    const id = `${name}-${this.#deps.newIdSuffix().toLowerCase()}`;
    const { accountId, arn: parent } = engine;
    const data: PolicyData = {
      ...{ description, wanted, validationMode, enforcementMode },
      ...{ status: 'CREATING', statusReasons: [], revision: 1 },
    };
    try {
      return await this.#writing(async (tx) => {
        await holdEngine(parent, tx);
        const row = { arn: this.arnOf(engine, id), accountId, id, name, data, parent };
        return policyFrom(await this.store.within(tx).create(row));
      });
    } catch (error) {
      if (!(error instanceof DuplicateResourceError)) throw error;
      throw errors.conflict(`The policy engine ${engine.id} already has a policy named ${name}.`, {
        remedy: 'Update or delete it, or choose another name.',
        cause: error,
      });
    }
  }

  /** Rejects with ResourceNotFoundException. */
  async get(engine: Engine, id: string): Promise<Policy> {
    const found = await this.store.get(this.arnOf(engine, id));
    if (found) return policyFrom(found);
    throw missing(engine, id);
  }

  /** UPDATING until it is checked; what it said before decides meanwhile. Rejects with ResourceNotFoundException and ValidationException. */
  async update(engine: Engine, input: control.UpdatePolicyRequest): Promise<Policy> {
    refuseUnserved(input, POLICY_FIELDS);
    const { policyId, description, definition, validationMode, enforcementMode } = input;
    const { arn } = await this.get(engine, policyId);
    const text = definition && (await this.#textOf(engine, definition));
    try {
      return await this.#writing(async (tx) => {
        await holdEngine(engine.arn, tx);
        const changed = await this.store.within(tx).modify(arn, ({ data }) => {
          const wanted = text ?? data.wanted ?? data.live;
          return {
            ...{ ...data, wanted, statusReasons: [], revision: data.revision + 1 },
            status: data.live ? 'UPDATING' : 'CREATING',
            ...(description && { description: description.optionalValue }),
            ...(validationMode && { validationMode }),
            ...(enforcementMode && { enforcementMode }),
          };
        });
        return policyFrom(changed);
      });
    } catch (error) {
      throw error instanceof MissingResourceError ? missing(engine, policyId) : error;
    }
  }

  /** In the order of creation; `after` is `next` of the page before. */
  async list(
    { accountId, arn: parent }: Pick<Engine, 'accountId' | 'arn'>,
    { limit, after }: { limit: number; after?: string | undefined },
  ): Promise<Page<Policy>> {
    const { items, ...next } = await this.store.list({
      ...{ accountId, parent, limit },
      ...(after !== undefined && { after }),
    });
    return { items: items.map(policyFrom), ...next };
  }

  /** All of an engine. */
  async all(engine: Pick<Engine, 'accountId' | 'arn'>): Promise<Policy[]> {
    return (await this.list(engine, { limit: MOST_POLICIES })).items;
  }

  /** Rejects with ResourceNotFoundException. */
  async delete(engine: Engine, id: string): Promise<Policy> {
    const found = await this.get(engine, id);
    if (await this.store.delete(found.arn)) return found;
    throw missing(engine, id);
  }

  /** Writes a policy and has it checked. */
  async #writing(write: (tx: Executor) => Promise<Policy>): Promise<Policy> {
    const queue = this.#queue;
    if (!queue) throw new Error('nobody checks policies');
    const written = await this.#deps.database.transaction(async (tx) => {
      const policy = await write(tx);
      const { arn, revision, engineArn } = policy;
      await queue.enqueue({ arn, revision }, { key: engineArn, within: tx });
      return policy;
    });
    queue.look();
    return written;
  }

  async #textOf(engine: Engine, definition: control.PolicyDefinition): Promise<PolicyText> {
    if (definition.policyGeneration) return this.#deps.generated(engine, definition.policyGeneration);
    const text = definition.cedar?.statement ?? definition.policy?.statement;
    if (text === undefined) throw errors.invalidField('definition', 'must be cedar, policy or policyGeneration');
    return { language: definition.cedar ? 'cedar' : 'dogwood', text };
  }
}

function missing(engine: Engine, id: string): Error {
  return errors.resourceNotFound(`The policy engine ${engine.id} has no policy ${id}.`, {
    remedy: 'ListPolicies lists those that exist.',
  });
}
