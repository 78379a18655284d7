import { createSecretKey, type KeyObject, randomBytes, randomUUID } from 'node:crypto';
import type { Clock } from '../../../kernel/clock.ts';
import { Lru } from '../../../kernel/lru.ts';
import { KEY_BYTES, open, Secret, type Secrets, seal } from '../../../kernel/secrets/index.ts';
import { type Caller, ofThePlatform } from '../../../kernel/service.ts';
import {
  type Changes,
  type Database,
  DuplicateResourceError,
  type Executor,
  Known,
  type Resource,
  ResourceStore,
  VersionConflictError,
} from '../../../kernel/storage/index.ts';
import { object, stored, text } from '../../../kernel/stored-shape.ts';
import { ConcurrentVaultChange } from './errors.ts';
import { DEFAULT_VAULT, TOKEN_VAULT_KIND, type TokenVault, tokenVaultArn } from './token-vault.ts';
import type { VaultKeys } from './vault-keys.ts';

export interface TokenVaultsDeps {
  database: Database;
  changes: Changes;
  clock: Clock;
  region: string;
  secrets: Pick<Secrets, 'put' | 'get' | 'delete'>;
  keys: VaultKeys;
}

/** Removes what was sealed by a vault that loses its data key, in the transaction in which it does. */
export type ForgetSealed = (accountId: string, tx: Executor) => Promise<void>;

interface Kept {
  dataKeyId: string;
  customerKey?: { arn: string; wrapped: string };
}

const SHAPE = object({ dataKeyId: text }, { customerKey: object({ arn: text, wrapped: text }) });
const KEPT = stored<Kept>(SHAPE);

/** A vault whose data key is at hand. */
interface Opened {
  vault: TokenVault;
  dataKey: KeyObject;
}

/** A text that was opened, and the place that it is for. */
interface OpenedText {
  context: string;
  text: Secret;
}

/** In memory, those that were used last. */
const KNOWN_VAULTS = 1000;
/** Characters of opened texts in memory, of those that were used last. */
const AT_HAND_CHARS = 4_000_000;

/**
 * The token vaults of accounts, each with a data key of its own that seals texts. The platform's master key wraps the data key, by way of the
 * kernel's secrets, or a key of the account's does: then nothing is sealed or opened without that key and the caller's right to it.
 */
export class TokenVaults {
  readonly #deps: TokenVaultsDeps;
  readonly #store: ResourceStore<Kept>;
  readonly #opened: Known<Opened>;
  /** By what was sealed, which says the same for ever; key, caller and place are asked for each time. */
  readonly #texts = new Lru<string, OpenedText>(AT_HAND_CHARS, ({ text }) => text.reveal().length);
  readonly #forget: ForgetSealed[] = [];

  constructor(deps: TokenVaultsDeps) {
    const { database: executor, changes, clock } = deps;
    this.#deps = deps;
    this.#opened = new Known(TOKEN_VAULT_KIND, changes, KNOWN_VAULTS);
    this.#store = new ResourceStore({ executor, clock, kind: TOKEN_VAULT_KIND, ...KEPT });
  }

  arnOf(accountId: string): string {
    return tokenVaultArn({ region: this.#deps.region, accountId });
  }

  /** Has `forget` called by every reset. */
  onReset(forget: ForgetSealed): void {
    this.#forget.push(forget);
  }

  /** The account's vault, made now if it is used for the first time. */
  async get(accountId: string): Promise<TokenVault> {
    const arn = this.arnOf(accountId);
    const found = await this.#store.get(arn);
    return fromResource(found ?? (await this.#create(arn, accountId)));
  }

  /**
   * Seals a text for this vault and this place alone. Rejects with ValidationException when the vault's key cannot be used, saying why, and
   * AccessDeniedException when not by the caller.
   */
  async seal(text: Secret, context: string, caller: Caller): Promise<string> {
    const { vault, dataKey } = await this.#open(caller);
    const bytes = seal(dataKey, Buffer.from(text.reveal()), contextOf(vault, context));
    return `${vault.dataKeyId}.${bytes.toString('base64')}`;
  }

  /**
   * Opens what `seal` gave, for the same context. Undefined for what was sealed before the vault was reset: it is lost. Rejects as `seal`
   * does, and with `SecretIntegrityError` for what was altered or moved.
   */
  async open(sealed: string, context: string, caller: Caller): Promise<Secret | undefined> {
    const { vault, dataKey } = await this.#open(caller);
    const { dataKeyId } = vault;
    if (!sealed.startsWith(`${dataKeyId}.`)) return undefined;
    const known = this.#texts.get(sealed);
    if (known?.context === context) return known.text;
    const bytes = Buffer.from(sealed.slice(dataKeyId.length + 1), 'base64');
    const text = new Secret(open(dataKey, bytes, contextOf(vault, context)).toString());
    this.#texts.set(sealed, { context, text });
    return text;
  }

  /** Has the data key wrapped by that key of the account's from now on, or by the platform; what is sealed stays as it is. Throws `ConcurrentVaultChange`. */
  async rewrap(customerKeyArn: string | undefined, caller: Caller): Promise<TokenVault> {
    const { vault, dataKey } = await this.#open(caller);
    const wrapped = customerKeyArn && (await this.#deps.keys.wrap(customerKeyArn, dataKey.export(), caller));
    const customerKey = customerKeyArn && wrapped ? { customerKey: { arn: customerKeyArn, wrapped } } : {};
    return this.#change(vault, { dataKeyId: vault.dataKeyId, ...customerKey }, async (tx) => {
      const name = keyName(vault);
      if (customerKeyArn) await this.#deps.secrets.delete(name, tx);
      else await this.#deps.secrets.put(name, asSecret(dataKey.export()), tx);
    });
  }

  /** Begins anew with a data key that the platform wraps, and removes whatever was sealed with the one before. Throws `ConcurrentVaultChange`. */
  async reset(accountId: string): Promise<TokenVault> {
    const vault = await this.get(accountId);
    const dataKeyId = randomUUID();
    return this.#change(vault, { dataKeyId }, async (tx) => {
      await this.#deps.secrets.delete(keyName(vault), tx);
      await this.#deps.secrets.put(keyName({ ...vault, dataKeyId }), asSecret(randomBytes(KEY_BYTES)), tx);
      for (const forget of this.#forget) await forget(accountId, tx);
    });
  }

  async #create(arn: string, accountId: string): Promise<Resource<Kept>> {
    const { database, secrets } = this.#deps;
    const data: Kept = { dataKeyId: randomUUID() };
    try {
      return await database.transaction(async (tx) => {
        const row = { arn, accountId, id: DEFAULT_VAULT, name: DEFAULT_VAULT, data };
        const made = await this.#store.within(tx).create(row);
        await secrets.put(keyName(fromResource(made)), asSecret(randomBytes(KEY_BYTES)), tx);
        return made;
      });
    } catch (error) {
      // Another request was first.
      const found = error instanceof DuplicateResourceError ? await this.#store.get(arn) : undefined;
      if (!found) throw error;
      return found;
    }
  }

  async #change(vault: TokenVault, kept: Kept, beside: (tx: Executor) => Promise<void>): Promise<TokenVault> {
    try {
      return await this.#deps.database.transaction(async (tx) => {
        const changed = await this.#store.within(tx).update(vault.arn, vault.version, kept);
        await beside(tx);
        return fromResource(changed);
      });
    } catch (error) {
      throw error instanceof VersionConflictError ? new ConcurrentVaultChange(error) : error;
    }
  }

  /** The vault, from the memory if it has not changed. If the account has a key of its own, each call checks the permission for it. */
  async #open(caller: Caller): Promise<Opened> {
    const opened = await this.#opened.get(this.arnOf(caller.accountId), () => this.#load(caller));
    if (!opened) throw new Error('a token vault was not made');
    const { customerKey } = opened.vault;
    if (customerKey) await this.#deps.keys.need(customerKey.arn, caller);
    return opened;
  }

  async #load({ accountId }: Caller): Promise<Opened> {
    const vault = await this.get(accountId);
    const { customerKey } = vault;
    // Whoever waits for the same has rights of his own, which are asked for behind this.
    if (customerKey) {
      const { keys } = this.#deps;
      const dataKey = await keys.unwrap(customerKey.arn, customerKey.wrapped, ofThePlatform(accountId));
      return { vault, dataKey: createSecretKey(dataKey) };
    }
    const kept = await this.#deps.secrets.get(keyName(vault));
    if (!kept) throw new Error(`the data key of ${vault.arn} is gone`);
    return { vault, dataKey: createSecretKey(kept.reveal(), 'base64') };
  }
}

function asSecret(key: Uint8Array): Secret {
  return new Secret(Buffer.from(key).toString('base64'));
}

function keyName({ accountId, arn, dataKeyId }: Pick<TokenVault, 'accountId' | 'arn' | 'dataKeyId'>) {
  return { accountId, name: `${arn}#data-key/${dataKeyId}` };
}

/** What is sealed in one vault or place opens in no other. */
function contextOf({ arn }: TokenVault, context: string): string {
  return JSON.stringify(['agentplatform-token-vault', arn, context]);
}

function fromResource({ arn, accountId, data, updatedAt, version }: Resource<Kept>): TokenVault {
  const { dataKeyId, customerKey } = data;
  return { arn, accountId, dataKeyId, customerKey, modifiedAt: updatedAt.getTime(), version };
}
