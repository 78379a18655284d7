import { type control, errors, resourceArn } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import { refuseUnserved } from '../../../kernel/served-fields.ts';
import {
  type Database,
  type Executor,
  fromResource,
  MissingResourceError,
  nameTaken,
  type Page,
  ResourceStore,
} from '../../../kernel/storage/index.ts';
import { ENGINE_FIELDS } from '../policy-fields.ts';
import { ENGINE_KIND, type Engine, type EngineData, storedEngine } from './policy-engine.ts';

export interface EnginesDeps {
  database: Database;
  clock: Clock;
  region: string;
  newIdSuffix(): string;
}

/** Of an account. */
const MOST_ENGINES = 1_000;

/** The policy engines of accounts. One is ACTIVE once it is made: nothing of it is made later. */
export class Engines {
  readonly #deps: EnginesDeps;
  readonly #store: ResourceStore<EngineData>;

  constructor(deps: EnginesDeps) {
    this.#deps = deps;
    this.#store = new ResourceStore<EngineData>({
      ...{ executor: deps.database, clock: deps.clock, kind: ENGINE_KIND, most: MOST_ENGINES },
      ...storedEngine,
    });
  }

  /** The ARN of an engine; `*` as id stands for all of an account. */
  arnOf(accountId: string, id: string): string {
    return resourceArn('policy-engine', { region: this.#deps.region, accountId }, id);
  }

  /** Rejects with ConflictException when the name is taken, and with ValidationException. */
  async create(input: control.CreatePolicyEngineRequest, accountId: string): Promise<Engine> {
    refuseUnserved(input, ENGINE_FIELDS);
    const { name, description, tags = {} } = input;
    const id = `${name}-${this.#deps.newIdSuffix().toLowerCase()}`;
    const arn = this.arnOf(accountId, id);
    const data: EngineData = { description, status: 'ACTIVE', sessionEpoch: 1 };
    try {
      return fromResource(await this.#store.create({ arn, accountId, id, name, data, tags }));
    } catch (error) {
      throw nameTaken(error, 'A policy engine', 'Use that one, delete it, or choose another name.');
    }
  }

  /** Undefined when there is none of this ARN. */
  async load(arn: string): Promise<Engine | undefined> {
    const found = await this.#store.get(arn);
    return found && fromResource(found);
  }

  /** Rejects with ResourceNotFoundException. */
  async get(accountId: string, id: string): Promise<Engine> {
    const found = await this.load(this.arnOf(accountId, id));
    if (found) return found;
    throw missing(id);
  }

  /** Rejects with ResourceNotFoundException. */
  async update(input: control.UpdatePolicyEngineRequest, accountId: string): Promise<Engine> {
    refuseUnserved(input, ENGINE_FIELDS);
    const { policyEngineId: id, description } = input;
    return this.#modify(this.arnOf(accountId, id), id, (data) =>
      description ? { ...data, description: description.optionalValue } : data,
    );
  }

  /** Ends the policy sessions of an engine: its temporal policies are others. */
  async endSessions(arn: string, tx: Executor): Promise<void> {
    await this.#store.within(tx).modify(arn, ({ data }) => ({ ...data, sessionEpoch: data.sessionEpoch + 1 }));
  }

  /** In the order of creation; `after` is `next` of the page before. */
  async list(
    accountId: string,
    { limit, after }: { limit: number; after?: string | undefined },
  ): Promise<Page<Engine>> {
    const { items, ...next } = await this.#store.list({ accountId, limit, ...(after !== undefined && { after }) });
    return { items: items.map(fromResource), ...next };
  }

  /** Rejects with ResourceNotFoundException, and with ConflictException while it has policies or a gateway is attached to it. */
  async delete(accountId: string, id: string): Promise<Engine> {
    const arn = this.arnOf(accountId, id);
    return this.#deps.database.transaction(async (tx) => {
      // A policy that is being made and a gateway that is being attached wait for this, or this for them (`holdEngine`).
      await tx.query('SELECT FROM resources WHERE arn = $1 FOR UPDATE', [arn]);
      const store = this.#store.within(tx);
      const found = await store.get(arn);
      if (!found) throw missing(id);
      const [held] = await tx.query<{ policies: number; gateway: string | null }>(
        `SELECT (SELECT count(*)::int FROM resources WHERE account_id = $1 AND parent = $2 AND kind = 'policy') AS policies,
           (SELECT min(name) FROM resources WHERE account_id = $1 AND kind = 'gateway'
             AND data #>> '{definition,policyEngineConfiguration,arn}' = $2) AS gateway`,
        [accountId, arn],
      );
      if (held && held.policies > 0)
        throw errors.conflict(`The policy engine ${id} has ${held.policies} policies.`, {
          remedy: 'Delete them before it.',
        });
      if (held?.gateway)
        throw errors.conflict(`The gateway ${held.gateway} is attached to the policy engine ${id}.`, {
          remedy: 'Update the gateway without policyEngineConfiguration first.',
        });
      await tx.execute('DELETE FROM resources WHERE account_id = $1 AND parent = $2', [accountId, arn]);
      await tx.execute('DELETE FROM policy_sessions WHERE engine_arn = $1', [arn]);
      await store.delete(arn);
      return fromResource(found);
    });
  }

  async #modify(arn: string, id: string, change: (data: EngineData) => EngineData): Promise<Engine> {
    try {
      return fromResource(await this.#store.modify(arn, ({ data }) => change(data)));
    } catch (error) {
      throw error instanceof MissingResourceError ? missing(id) : error;
    }
  }
}

/** Keeps an engine from being deleted until the transaction ends. Rejects with ResourceNotFoundException. */
export async function holdEngine(arn: string, tx: Executor): Promise<void> {
  const held = await tx.query('SELECT FROM resources WHERE arn = $1 AND kind = $2 FOR KEY SHARE', [arn, ENGINE_KIND]);
  if (held.length === 0) throw missing(arn.split('/').at(-1) ?? '');
}

function missing(id: string): Error {
  return errors.resourceNotFound(`There is no policy engine ${id} in this account.`, {
    remedy: 'ListPolicyEngines lists those that exist.',
  });
}

/** The ARNs of the gateways that are attached to an engine. */
export async function gatewaysOf(engineArn: string, executor: Pick<Executor, 'query'>): Promise<string[]> {
  const rows = await executor.query<{ arn: string }>(
    `SELECT arn FROM resources WHERE account_id = split_part($1, ':', 5) AND kind = 'gateway'
       AND data #>> '{definition,policyEngineConfiguration,arn}' = $1 ORDER BY seq LIMIT 1000`,
    [engineArn],
  );
  return rows.map(({ arn }) => arn);
}
