import { randomUUID } from 'node:crypto';
import { errors, parseArn, resourceArn } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import { Secret, type Secrets } from '../../kernel/secrets/index.ts';
import type { Caller } from '../../kernel/service.ts';
import {
  type Database,
  DuplicateResourceError,
  type Executor,
  MissingResourceError,
  type Resource,
  ResourceStore,
} from '../../kernel/storage/index.ts';
import { object, stored, text } from '../../kernel/stored-shape.ts';
import { newSecretSuffix, SECRET_KIND, type SecretScope, type StoredSecret, secretArn } from './secret.ts';

export interface StoredSecretsDeps {
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
  /** Changes when any of the secrets changes. It reveals nothing about the values. */
  revision: string;
}

interface Kept {
  setBy: string;
  /** Another for each value. */
  revision: string;
}

const KEPT = stored<Kept>(object({ setBy: text, revision: text }));

/** Of an account, those of its runtimes included. */
const MOST_SECRETS = 500;

/** Secrets by ARN, such as keys of models. Who set which, and when, stands in the table `resources`; the value is sealed, under the same ARN. */
export class StoredSecrets {
  readonly #deps: StoredSecretsDeps;

  constructor(deps: StoredSecretsDeps) {
    this.#deps = deps;
  }

  /** Undefined when there is none of this name. */
  async find(scope: SecretScope, name: string): Promise<StoredSecret | undefined> {
    const found = await this.#find(scope, name);
    return found && fromResource(found);
  }

  /** The ARN of the secret of that name; with a suffix of its own where there is none, which `put` may be given. */
  async arnFor(scope: SecretScope, name: string, suffix?: string): Promise<string> {
    return (await this.#find(scope, name))?.arn ?? this.#newArn(scope, name, suffix);
  }

  /**
   * Sets or replaces; `setBy` is the ARN of who does, `arn` what `arnFor` gave. Rejects with ResourceNotFoundException, for its runtime, and
   * ServiceQuotaExceededException.
   */
  async put(
    scope: SecretScope,
    name: string,
    value: Secret,
    { setBy, arn = this.#newArn(scope, name) }: { setBy: string; arn?: string },
  ): Promise<StoredSecret> {
    const { accountId } = scope;
    const parent = this.#parentOf(scope);
    const data = { setBy, revision: randomUUID() };
    const write = (row: (store: ResourceStore<Kept>) => Promise<Resource<Kept>>): Promise<StoredSecret> =>
      this.#deps.database.transaction(async (tx) => {
        if (parent !== '') await holdRuntime(parent, tx);
        const written = await row(this.#store(tx));
        await this.#deps.secrets.put({ accountId, name: written.arn }, value, tx);
        return fromResource(written);
      });
    const replace = () =>
      write(async (store) => {
        const found = await store.find({ accountId, parent, name });
        if (!found) throw new MissingResourceError(arn);
        return store.modify(found.arn, () => data);
      });
    try {
      return await replace();
    } catch (error) {
      if (!(error instanceof MissingResourceError)) throw error;
      await this.#needRoom(accountId);
      const made = write((store) => store.create({ arn, accountId, id: name, name, parent, data }));
      // Another was first: the later one counts.
      return made.catch((cause: unknown) =>
        cause instanceof DuplicateResourceError ? replace() : Promise.reject(cause),
      );
    }
  }

  /** Those of the account, or of one runtime, in the order of their making. */
  async list(scope: SecretScope, executor?: Executor): Promise<StoredSecret[]> {
    const of = { accountId: scope.accountId, parent: this.#parentOf(scope), limit: MOST_SECRETS };
    return (await this.#store(executor).list(of)).items.map(fromResource);
  }

  /** Whether there was one. */
  delete(scope: SecretScope, name: string): Promise<boolean> {
    return this.#deps.database.transaction((tx) => this.#remove(scope, name, tx));
  }

  /**
   * The value of a secret, by its ARN or the name of one of the account; with `jsonKey` the text under that key of the JSON that it holds.
   * Rejects with AccessDeniedException unless the caller may `secretsmanager:GetSecretValue`, ResourceNotFoundException, and
   * ValidationException when there is no such text; nothing of the value is in it.
   */
  async read(secretId: string, jsonKey: string | undefined, caller: Caller): Promise<{ arn: string; value: Secret }> {
    const { accountId } = caller;
    // If no secret has this name, the check uses an ARN that it could have. So a refusal does not reveal which secrets exist.
    const arn = secretId.startsWith('arn:') ? secretId : await this.arnFor({ accountId }, secretId, '*');
    if (parseArn(arn)?.service !== 'secretsmanager')
      throw errors.invalidField('secretId', 'must be the ARN or the name of a secret');
    await caller.require('secretsmanager:GetSecretValue', arn);
    const found = await this.#store().get(arn);
    const whole = found?.accountId === accountId ? await this.#deps.secrets.get({ accountId, name: arn }) : undefined;
    if (!whole)
      throw errors.resourceNotFound(`There is no secret ${secretId} in this account.`, {
        remedy: 'agentcore secret list lists those that exist, with their ARNs.',
      });
    return { arn, value: jsonKey === undefined ? whole : memberOf(whole, jsonKey, arn) };
  }

  /** Removes those of a runtime that is being removed. */
  async forget({ accountId, id: runtimeId }: SecretHolder, tx: Executor): Promise<void> {
    const scope = { accountId, runtimeId };
    for (const { name } of await this.list(scope, tx)) await this.#remove(scope, name, tx);
  }

  /** Another text after each change of any of these secrets. */
  async revision(holder: SecretHolder, names: readonly string[]): Promise<string> {
    const found = await this.#findAll(holder, names);
    return revisionOf(names, found);
  }

  /** What the runtime gets of these: its own of that name, else the account's. */
  async give(holder: SecretHolder, names: readonly string[]): Promise<GivenSecrets> {
    // First what says how old the values are: one that changes meanwhile counts as old, and never an old one as new.
    const found = await this.#findAll(holder, names);
    const values = new Map<string, Secret>();
    for (const [name, { arn }] of found) {
      const value = await this.#deps.secrets.get({ accountId: holder.accountId, name: arn });
      if (value) values.set(name, value);
    }
    return { values, missing: names.filter((name) => !values.has(name)), revision: revisionOf(names, found) };
  }

  #newArn(scope: SecretScope, name: string, suffix = newSecretSuffix()): string {
    return secretArn(this.#homeOf(scope), scope, name, suffix);
  }

  async #remove(scope: SecretScope, name: string, tx: Executor): Promise<boolean> {
    const found = await this.#find(scope, name, tx);
    if (!found) return false;
    await this.#deps.secrets.delete({ accountId: scope.accountId, name: found.arn }, tx);
    return this.#store(tx).delete(found.arn);
  }

  #find(scope: SecretScope, name: string, executor?: Executor): Promise<Resource<Kept> | undefined> {
    return this.#store(executor).find({ accountId: scope.accountId, parent: this.#parentOf(scope), name });
  }

  async #findAll({ accountId, id }: SecretHolder, names: readonly string[]): Promise<Map<string, Resource<Kept>>> {
    const found = new Map<string, Resource<Kept>>();
    for (const name of names) {
      const secret = (await this.#find({ accountId, runtimeId: id }, name)) ?? (await this.#find({ accountId }, name));
      if (secret) found.set(name, secret);
    }
    return found;
  }

  /** The ARN of the runtime that a secret is for, '' for the account's. */
  #parentOf(scope: SecretScope): string {
    return scope.runtimeId === undefined ? '' : resourceArn('runtime', this.#homeOf(scope), scope.runtimeId);
  }

  #homeOf({ accountId }: SecretScope) {
    return { region: this.#deps.region, accountId };
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
    return new ResourceStore({ executor, clock, kind: SECRET_KIND, ...KEPT });
  }
}

/** Throws ValidationException, which has the names and nothing else. */
function memberOf(whole: Secret, jsonKey: string, arn: string): Secret {
  let value: unknown;
  try {
    value = JSON.parse(whole.reveal());
  } catch {
    // What the parser says has a piece of the value.
    throw errors.validation(`The secret ${arn} holds no JSON, so it has no key ${jsonKey}.`, {
      remedy: 'Set it to a JSON object: {"KEY": "VALUE"}.',
    });
  }
  const member =
    typeof value === 'object' && value !== null && Object.hasOwn(value, jsonKey)
      ? Reflect.get(value, jsonKey)
      : undefined;
  if (typeof member === 'string' && member !== '') return new Secret(member);
  throw errors.validation(`The JSON of the secret ${arn} has no text under the key ${jsonKey}.`);
}

/** Keeps the runtime from being removed while it gets a secret. */
async function holdRuntime(arn: string, tx: Executor): Promise<void> {
  const found = await tx.query('SELECT arn FROM resources WHERE arn = $1 FOR SHARE', [arn]);
  if (found.length === 0)
    throw errors.resourceNotFound('There is no such agent runtime in this account.', {
      remedy: 'ListAgentRuntimes lists those that exist.',
    });
}

function revisionOf(names: readonly string[], found: ReadonlyMap<string, Resource<Kept>>): string {
  return names.map((name) => found.get(name)?.data.revision ?? '').join(' ');
}

function fromResource({ arn, name, parent, data, updatedAt }: Resource<Kept>): StoredSecret {
  const runtimeId = parent === '' ? undefined : parent.slice(parent.lastIndexOf('/') + 1);
  return { arn, name, runtimeId, setAt: updatedAt.getTime(), setBy: data.setBy };
}
