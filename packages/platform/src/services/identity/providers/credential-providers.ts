import { errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { Secret } from '../../../kernel/secrets/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import {
  type Changes,
  type Database,
  DuplicateResourceError,
  type Executor,
  Known,
  MissingResourceError,
  nameTaken,
  type Page,
  type Resource,
  ResourceStore,
  timesOf,
  VersionConflictError,
} from '../../../kernel/storage/index.ts';
import { object, record, type Shape, stored } from '../../../kernel/stored-shape.ts';
import { type CredentialProvider, PROVIDER_WORDS, type ProviderKind, providerArn } from './credential-provider.ts';
import { type GivenSecret, type KeptSecret, storedSecret } from './provider-secret.ts';
import type { ProviderSecrets } from './provider-secrets.ts';

export interface CredentialProvidersDeps<Data> {
  kind: ProviderKind;
  /** What is kept of one. */
  shape: Shape<Data>;
  database: Database;
  changes: Changes;
  clock: Clock;
  region: string;
  secrets: ProviderSecrets;
}

/** What a request gives of a provider: its data, and its secrets by the wire's names of their fields. */
export interface GivenProvider<Data> {
  data: Data;
  secrets: Readonly<Record<string, GivenSecret>>;
}

/** What goes with a change of a provider, in its transaction; `after` is undefined when it is removed. */
export type Beside<Data> = (
  tx: Executor,
  before: CredentialProvider<Data>,
  after?: CredentialProvider<Data>,
) => Promise<void>;

/** Of one kind and account. */
export const MOST_PROVIDERS = 1000;
/** In memory, those that were used last. */
const KNOWN_PROVIDERS = 1000;

interface Kept<Data> {
  data: Data;
  secrets: Record<string, KeptSecret>;
}

/** The credential providers of one kind. Their secrets go in and come out by `secret` alone. */
export class CredentialProviders<Data> {
  readonly #deps: CredentialProvidersDeps<Data>;
  readonly #store: ResourceStore<Kept<Data>>;
  readonly #known: Known<CredentialProvider<Data>>;

  constructor(deps: CredentialProvidersDeps<Data>) {
    const { database: executor, changes, clock, kind, shape } = deps;
    this.#deps = deps;
    this.#known = new Known(kind, changes, KNOWN_PROVIDERS);
    this.#store = new ResourceStore({
      executor,
      clock,
      kind,
      most: MOST_PROVIDERS,
      ...stored<Kept<Data>>(object({ data: shape, secrets: record(storedSecret) })),
    });
  }

  /** What the change feed calls a change of one. */
  get topic(): string {
    return this.#deps.kind;
  }

  arnOf(accountId: string, name: string): string {
    return providerArn(this.#deps.kind, { region: this.#deps.region, accountId }, name);
  }

  /** Rejects with ConflictException when the name is taken, ServiceQuotaExceededException, and what `ProviderSecrets.take` rejects with. */
  async create(
    call: GivenProvider<Data> & { name: string; tags?: Record<string, string> | undefined },
    caller: Caller,
  ): Promise<CredentialProvider<Data>> {
    const { kind, database, secrets } = this.#deps;
    const { name, data, tags = {} } = call;
    const { accountId } = caller;
    const arn = this.arnOf(accountId, name);
    // Before anybody's secret is read.
    if (await this.#store.get(arn)) throw this.#taken(new DuplicateResourceError(this.#deps.kind, name));
    const taken = await secrets.take({ kind, arn, accountId, name }, call.secrets, { caller });
    const row = { arn, accountId, id: name, name, data: { data, secrets: taken.kept }, tags };
    try {
      return await database.transaction(async (tx) => {
        const made = await this.#store.within(tx).create(row);
        await taken.write(tx);
        return providerFrom(made);
      });
    } catch (error) {
      throw this.#taken(error);
    }
  }

  /** Undefined when there is none of this name; from memory where it was used before. */
  find(accountId: string, name: string): Promise<CredentialProvider<Data> | undefined> {
    return this.#known.get(this.arnOf(accountId, name), () => this.read(accountId, name));
  }

  /** The same, as it is in the database now. */
  async read(accountId: string, name: string): Promise<CredentialProvider<Data> | undefined> {
    const found = await this.#store.get(this.arnOf(accountId, name));
    return found && providerFrom(found);
  }

  /** The same; rejects with ResourceNotFoundException. */
  async get(accountId: string, name: string): Promise<CredentialProvider<Data>> {
    const found = await this.find(accountId, name);
    if (found) return found;
    throw this.#missing(name);
  }

  /** In the order of creation; `after` is `next` of the page before. */
  async list(
    accountId: string,
    { limit, after }: { limit: number; after: string | undefined },
  ): Promise<Page<CredentialProvider<Data>>> {
    const { items, ...next } = await this.#store.list({ accountId, limit, ...(after === undefined ? {} : { after }) });
    return { items: items.map((one) => providerFrom(one)), ...next };
  }

  /**
   * Replaces its data; a secret that `change` gives anew is replaced, any other is kept. `beside` runs in the same transaction. Rejects with ResourceNotFoundException,
   * ConflictException when another writer was faster, and what `ProviderSecrets.take` rejects with.
   */
  async update(
    name: string,
    change: (current: CredentialProvider<Data>) => GivenProvider<Data>,
    caller: Caller,
    beside: Beside<Data> = async () => undefined,
  ): Promise<CredentialProvider<Data>> {
    const { kind, database, secrets } = this.#deps;
    const { accountId } = caller;
    const arn = this.arnOf(accountId, name);
    const current = await this.#store.get(arn);
    if (!current) throw this.#missing(name);
    const given = change(providerFrom(current));
    const before = current.data.secrets;
    const taken = await secrets.take({ kind, arn, accountId, name }, given.secrets, { before, caller });
    try {
      return await database.transaction(async (tx) => {
        const data = { data: given.data, secrets: { ...before, ...taken.kept } };
        const changed = await this.#store.within(tx).update(arn, current.version, data);
        await taken.write(tx);
        await beside(tx, providerFrom(current), providerFrom(changed));
        return providerFrom(changed);
      });
    } catch (error) {
      if (error instanceof MissingResourceError) throw this.#missing(name);
      if (!(error instanceof VersionConflictError)) throw error;
      throw errors.conflict(`The ${this.#title} ${name} was changed by another request at the same time.`, {
        remedy: 'Repeat the request.',
        cause: error,
      });
    }
  }

  /** With its managed secrets; `beside` runs in the same transaction. Rejects with ResourceNotFoundException. */
  async delete(accountId: string, name: string, beside: Beside<Data> = async () => undefined): Promise<void> {
    const { database, secrets } = this.#deps;
    const arn = this.arnOf(accountId, name);
    await database.transaction(async (tx) => {
      const store = this.#store.within(tx);
      const found = await store.get(arn);
      if (!found || !(await store.delete(arn))) throw this.#missing(name);
      await secrets.forget(providerFrom(found), tx);
      await beside(tx, providerFrom(found));
    });
  }

  /** The secret that was given in that field, undefined where none was. Rejects with what `ProviderSecrets.read` rejects with. */
  secret(provider: CredentialProvider<Data>, field: string, caller: Caller): Promise<Secret | undefined> {
    return this.#deps.secrets.read(provider, field, caller);
  }

  get #title(): string {
    return PROVIDER_WORDS[this.#deps.kind].title;
  }

  #taken(error: unknown): unknown {
    return nameTaken(error, `A ${this.#title}`, 'Update or delete it, or choose another name.');
  }

  #missing(name: string): Error {
    return errors.resourceNotFound(`There is no ${this.#title} named ${name} in this account.`, {
      remedy: `${PROVIDER_WORDS[this.#deps.kind].list} lists those that exist.`,
    });
  }
}

function providerFrom<Data>(resource: Resource<Kept<Data>>): CredentialProvider<Data> {
  const { arn, accountId, name, data, tags } = resource;
  return { arn, accountId, name, ...data, tags, ...timesOf(resource) };
}
