import { randomUUID } from 'node:crypto';
import { errors, resourceArn } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import type { Secret, Secrets } from '../../kernel/secrets/index.ts';
import {
  type Database,
  DuplicateResourceError,
  type Executor,
  MissingResourceError,
  type Resource,
  ResourceStore,
} from '../../kernel/storage/index.ts';
import { AGENT_SECRET_KIND, type AgentSecret, agentSecretArn, type SecretScope } from './secret.ts';

export interface AgentSecretsDeps {
  database: Database;
  secrets: Secrets;
  clock: Clock;
  region: string;
}

/** A runtime that gets secrets. */
export interface SecretHolder {
  accountId: string;
  /** Its id. */
  id: string;
}

/** What a runtime gets now. */
export interface GivenSecrets {
  /** By the name of the secret. */
  values: Map<string, Secret>;
  missing: string[];
  /** Another after each change of any of them; says nothing of the values. */
  revision: string;
}

interface Kept {
  setBy: string;
  /** Another for each value. */
  revision: string;
}

/** Of an account, those of its runtimes included. */
const MOST_SECRETS = 500;

/** Secrets that agents work with, such as keys of models. Who set which, and when, stands in the table `resources`; the value is sealed, under the same ARN. */
export class AgentSecrets {
  readonly #deps: AgentSecretsDeps;

  constructor(deps: AgentSecretsDeps) {
    this.#deps = deps;
  }

  /** Sets or replaces; `setBy` is the ARN of who does. Rejects with ResourceNotFoundException, for its runtime, and ServiceQuotaExceededException. */
  async put(scope: SecretScope, name: string, value: Secret, setBy: string): Promise<void> {
    const { database, secrets } = this.#deps;
    const { accountId } = scope;
    const parent = this.#parentOf(scope);
    const arn = agentSecretArn(scope, name);
    const data = { setBy, revision: randomUUID() };
    const write = (row: (store: ResourceStore<Kept>) => Promise<unknown>): Promise<void> =>
      database.transaction(async (tx) => {
        if (parent !== '') await holdRuntime(parent, tx);
        await row(this.#store(tx));
        await secrets.put({ accountId, name: arn }, value, tx);
      });
    const replace = () => write((store) => store.modify(arn, () => data));
    try {
      await replace();
    } catch (error) {
      if (!(error instanceof MissingResourceError)) throw error;
      await this.#needRoom(accountId);
      const made = write((store) => store.create({ arn, accountId, id: name, name, parent, data }));
      // Another was first: the later one counts.
      await made.catch((cause: unknown) =>
        cause instanceof DuplicateResourceError ? replace() : Promise.reject(cause),
      );
    }
  }

  /** Those of the account, or of one runtime, in the order of their making. */
  async list(scope: SecretScope, executor?: Executor): Promise<AgentSecret[]> {
    const of = { accountId: scope.accountId, parent: this.#parentOf(scope), limit: MOST_SECRETS };
    return (await this.#store(executor).list(of)).items.map(fromResource);
  }

  /** Whether there was one. */
  delete(scope: SecretScope, name: string): Promise<boolean> {
    return this.#deps.database.transaction((tx) => this.#remove(scope, name, tx));
  }

  async #remove(scope: SecretScope, name: string, tx: Executor): Promise<boolean> {
    const arn = agentSecretArn(scope, name);
    await this.#deps.secrets.delete({ accountId: scope.accountId, name: arn }, tx);
    return this.#store(tx).delete(arn);
  }

  /** Removes those of a runtime that is being removed. */
  async forget({ accountId, id: runtimeId }: SecretHolder, tx: Executor): Promise<void> {
    const scope = { accountId, runtimeId };
    for (const { name } of await this.list(scope, tx)) await this.#remove(scope, name, tx);
  }

  /** Another text after each change of any of these secrets. */
  async revision(holder: SecretHolder, names: readonly string[]): Promise<string> {
    const found = await this.#find(holder, names);
    return revisionOf(names, found);
  }

  /** What the runtime gets of these: its own of that name, else the account's. */
  async give(holder: SecretHolder, names: readonly string[]): Promise<GivenSecrets> {
    // First what says how old the values are: one that changes meanwhile counts as old, and never an old one as new.
    const found = await this.#find(holder, names);
    const values = new Map<string, Secret>();
    for (const [name, { arn }] of found) {
      const value = await this.#deps.secrets.get({ accountId: holder.accountId, name: arn });
      if (value) values.set(name, value);
    }
    return { values, missing: names.filter((name) => !values.has(name)), revision: revisionOf(names, found) };
  }

  async #find({ accountId, id }: SecretHolder, names: readonly string[]): Promise<Map<string, Resource<Kept>>> {
    const found = new Map<string, Resource<Kept>>();
    const store = this.#store();
    for (const name of names) {
      const own = await store.get(agentSecretArn({ accountId, runtimeId: id }, name));
      const secret = own ?? (await store.get(agentSecretArn({ accountId }, name)));
      if (secret) found.set(name, secret);
    }
    return found;
  }

  /** The ARN of the runtime that a secret is for, '' for the account's. */
  #parentOf({ accountId, runtimeId }: SecretScope): string {
    if (runtimeId === undefined) return '';
    return resourceArn('runtime', { region: this.#deps.region, accountId }, runtimeId);
  }

  async #needRoom(accountId: string): Promise<void> {
    const { items } = await this.#store().list({ accountId, limit: MOST_SECRETS });
    if (items.length < MOST_SECRETS) return;
    throw errors.quota(`The account has ${MOST_SECRETS} secrets, which is the limit.`, {
      remedy: 'Delete those that no agent needs.',
    });
  }

  #store(executor: Executor = this.#deps.database): ResourceStore<Kept> {
    const { clock } = this.#deps;
    // Written by this file alone, from values of this very type.
    return new ResourceStore({ executor, clock, kind: AGENT_SECRET_KIND, parse: (data) => data as Kept });
  }
}

/** Keeps the runtime from being removed while it gets a secret. */
async function holdRuntime(arn: string, tx: Executor): Promise<void> {
  const found = await tx.query('SELECT arn FROM resources WHERE arn = $1 FOR SHARE', [arn]);
  if (found.length === 0)
    throw errors.resourceNotFound('There is no such agent runtime in this account.', {
      remedy: 'ListAgentRuntimes shows those that there are.',
    });
}

function revisionOf(names: readonly string[], found: ReadonlyMap<string, Resource<Kept>>): string {
  return names.map((name) => found.get(name)?.data.revision ?? '').join(' ');
}

function fromResource({ name, parent, data, updatedAt }: Resource<Kept>): AgentSecret {
  const runtimeId = parent === '' ? undefined : parent.slice(parent.lastIndexOf('/') + 1);
  return { name, runtimeId, setAt: updatedAt.getTime(), setBy: data.setBy };
}
