import { type KeyObject, randomUUID } from 'node:crypto';
import { errors } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import { open, SecretIntegrityError, type Secrets, seal } from '../../kernel/secrets/index.ts';
import type { Caller } from '../../kernel/service.ts';
import {
  type Changes,
  type Database,
  type Executor,
  Known,
  MissingResourceError,
  type Page,
  type Resource,
  ResourceStore,
} from '../../kernel/storage/index.ts';
import { number, object, oneOf, stored, text } from '../../kernel/stored-shape.ts';
import {
  ALGORITHMS,
  KEY_KIND,
  KEY_SPECS,
  type KeySpec,
  keyArn,
  type SigningAlgorithm,
  type StoredKey,
  unusable,
} from './key.ts';
import { newMaterial, openMaterial, signWith } from './key-material.ts';

export interface KeysDeps {
  database: Database;
  secrets: Secrets;
  changes: Changes;
  clock: Clock;
  region: string;
}

interface Kept {
  spec: KeySpec;
  description: string;
  createdBy: string;
  publicKey?: string;
  disabled?: true;
  deletionAt?: number;
}

const KEPT = stored<Kept>(
  object(
    { spec: oneOf(...KEY_SPECS), description: text, createdBy: text },
    { publicKey: text, disabled: oneOf(true), deletionAt: number },
  ),
);

/** A key at hand. */
interface OpenKey {
  key: StoredKey;
  material: KeyObject;
}

export const DAY_MS = 86_400_000;
/** Of an account. */
const MOST_KEYS = 500;
const KNOWN_KEYS = 500;
/** Bytes to sign or wrap: a token's claims, a key. */
const MOST_BYTES = 64 * 1024;

/**
 * Cryptographic keys by ARN. They wrap other keys or sign, and never leave the platform. The table `resources` has their descriptions. The key material is
 * sealed under the ARN. Each use names a caller, and the caller's policies must allow it on the ARN.
 */
export class Keys {
  readonly #deps: KeysDeps;
  readonly #open: Known<OpenKey>;

  constructor(deps: KeysDeps) {
    this.#deps = deps;
    this.#open = new Known(KEY_KIND, deps.changes, KNOWN_KEYS);
  }

  arnOf(accountId: string, id: string): string {
    return keyArn({ region: this.#deps.region, accountId }, id);
  }

  /** Rejects with ServiceQuotaExceededException. */
  async create(accountId: string, call: { spec: KeySpec; description: string; createdBy: string }): Promise<StoredKey> {
    const id = randomUUID();
    const arn = this.arnOf(accountId, id);
    const { secret, publicKey } = await newMaterial(call.spec);
    const data: Kept = { ...call, ...(publicKey === undefined ? {} : { publicKey }) };
    return this.#deps.database.transaction(async (tx) => {
      const made = await this.#store(tx).create({ arn, accountId, id, name: id, data });
      await this.#deps.secrets.put({ accountId, name: arn }, secret, tx);
      return fromResource(made);
    });
  }

  /** In the order of creation; `after` is `next` of the page before. */
  async list(
    accountId: string,
    { limit, after }: { limit: number; after?: string | undefined },
  ): Promise<Page<StoredKey>> {
    const { items, ...next } = await this.#store().list({
      accountId,
      limit,
      ...(after === undefined ? {} : { after }),
    });
    return { items: items.map(fromResource).filter((key) => !this.#isOver(key)), ...next };
  }

  /** Undefined if the key does not exist, has been deleted, or belongs to another account. */
  async find(accountId: string, arn: string): Promise<StoredKey | undefined> {
    const found = await this.#store().get(arn);
    if (found?.accountId !== accountId) return undefined;
    const key = fromResource(found);
    return this.#isOver(key) ? undefined : key;
  }

  /** The same; rejects with ResourceNotFoundException. */
  async get(accountId: string, arn: string): Promise<StoredKey> {
    return (await this.find(accountId, arn)) ?? refuseMissing(arn);
  }

  enable(accountId: string, arn: string): Promise<StoredKey> {
    return this.#modify(accountId, arn, ({ disabled: _, ...kept }) => {
      if (kept.deletionAt !== undefined) throw pending(arn);
      return kept;
    });
  }

  disable(accountId: string, arn: string): Promise<StoredKey> {
    return this.#modify(accountId, arn, (kept) => {
      if (kept.deletionAt !== undefined) throw pending(arn);
      return { ...kept, disabled: true };
    });
  }

  /** Until it is deleted it cannot be used, and deletion can be called off. With 0 days it is gone at once: undefined. */
  async scheduleDeletion(accountId: string, arn: string, days: number): Promise<StoredKey | undefined> {
    const deletionAt = this.#deps.clock.now() + days * DAY_MS;
    const key = await this.#modify(accountId, arn, (kept) => ({ ...kept, deletionAt }));
    if (days > 0) return key;
    await this.deleteDue();
    return undefined;
  }

  /** Leaves it disabled, as the wire's original does: who calls it off decides when it is used again. */
  cancelDeletion(accountId: string, arn: string): Promise<StoredKey> {
    return this.#modify(accountId, arn, ({ deletionAt, ...kept }) => {
      if (deletionAt === undefined) throw errors.validation(`The key ${arn} is not going to be deleted.`);
      return { ...kept, disabled: true };
    });
  }

  /** Deletes the keys that are due, with their key material. Resolves with their number. */
  async deleteDue(): Promise<number> {
    const { database, clock, secrets } = this.#deps;
    const due = await database.query<{ arn: string; account_id: string }>(
      `SELECT arn, account_id FROM resources WHERE kind = $1 AND (data ->> 'deletionAt')::bigint <= $2`,
      [KEY_KIND, clock.now()],
    );
    for (const { arn, account_id: accountId } of due)
      await database.transaction(async (tx) => {
        const gone = await tx.execute(
          `DELETE FROM resources WHERE arn = $1 AND kind = $2 AND (data ->> 'deletionAt')::bigint <= $3`,
          [arn, KEY_KIND, clock.now()],
        );
        if (gone > 0) await secrets.delete({ accountId, name: arn }, tx);
      });
    return due.length;
  }

  /**
   * A signature by that key. Rejects with AccessDeniedException when the caller may not `kms:Sign` with it, ResourceNotFoundException, and
   * ValidationException for a key that is disabled or going to be deleted, and for an algorithm that is not the key's.
   */
  async sign(arn: string, algorithm: SigningAlgorithm, bytes: Uint8Array, caller: Caller): Promise<Buffer> {
    const { key, material } = await this.#use(arn, 'kms:Sign', caller);
    if (!ALGORITHMS[key.spec].includes(algorithm))
      throw errors.validation(`The key ${arn} (${key.spec}) does not sign by ${algorithm}.`, {
        remedy: 'RS256 and PS256 need a key RSA_2048, ES256 a key ECC_NIST_P256.',
      });
    bounded(bytes);
    return signWith(material, algorithm, bytes);
  }

  /** Bytes that this key alone can open, as a text. Rejects as `sign` does (`kms:Encrypt`), and for a key that signs. */
  async wrap(arn: string, bytes: Uint8Array, caller: Caller): Promise<string> {
    const { key, material } = await this.#use(arn, 'kms:Encrypt', caller);
    needSymmetric(key);
    bounded(bytes);
    return seal(material, bytes, contextOf(arn)).toString('base64');
  }

  /** What `wrap` was given. Rejects as `sign` does (`kms:Decrypt`), and with DecryptionFailure for what this key has not wrapped. */
  async unwrap(arn: string, wrapped: string, caller: Caller): Promise<Uint8Array> {
    const { key, material } = await this.#use(arn, 'kms:Decrypt', caller);
    needSymmetric(key);
    try {
      return open(material, Buffer.from(wrapped, 'base64'), contextOf(arn));
    } catch (cause) {
      if (!(cause instanceof SecretIntegrityError)) throw cause;
      throw errors.decryptionFailure(`The key ${arn} has not encrypted this.`, { cause });
    }
  }

  /** Resolves when the caller could unwrap with it now; rejects as `unwrap` does. */
  async need(arn: string, caller: Caller): Promise<void> {
    needSymmetric((await this.#use(arn, 'kms:Decrypt', caller)).key);
  }

  async #use(arn: string, action: string, caller: Caller): Promise<OpenKey> {
    await caller.require(action, arn);
    const found = await this.#open.get(arn, () => this.#load(arn));
    if (!found || found.key.accountId !== caller.accountId || this.#isOver(found.key)) return refuseMissing(arn);
    const problem = unusable(found.key);
    if (problem)
      // No missing right: whoever reads it should look at the key, and not at policies.
      throw errors.validation(problem, {
        remedy: 'Enable it (agentcore key enable), or cancel its deletion (agentcore key cancel-deletion).',
      });
    return found;
  }

  async #load(arn: string): Promise<OpenKey | undefined> {
    const found = await this.#store().get(arn);
    const secret = found && (await this.#deps.secrets.get({ accountId: found.accountId, name: arn }));
    return found && secret && { key: fromResource(found), material: openMaterial(found.data.spec, secret) };
  }

  /** Its time has come, whether or not it was removed yet. */
  #isOver({ deletionAt }: StoredKey): boolean {
    return deletionAt !== undefined && deletionAt <= this.#deps.clock.now();
  }

  async #modify(accountId: string, arn: string, change: (kept: Kept) => Kept): Promise<StoredKey> {
    await this.get(accountId, arn);
    try {
      return fromResource(await this.#store().modify(arn, ({ data }) => change(data)));
    } catch (error) {
      if (error instanceof MissingResourceError) return refuseMissing(arn);
      throw error;
    }
  }

  #store(executor: Executor = this.#deps.database): ResourceStore<Kept> {
    const { clock } = this.#deps;
    // Written by this file alone, from values of this very type.
    return new ResourceStore({ executor, clock, kind: KEY_KIND, most: MOST_KEYS, ...KEPT });
  }
}

function bounded(bytes: Uint8Array): void {
  if (bytes.length > MOST_BYTES) throw errors.validation(`A key takes at most ${MOST_BYTES} bytes at once.`);
}

function needSymmetric({ arn, spec }: StoredKey): void {
  if (spec === 'SYMMETRIC_DEFAULT') return;
  throw errors.validation(`The key ${arn} (${spec}) signs, and encrypts nothing.`, {
    remedy: 'Make one that does: agentcore key create --spec SYMMETRIC_DEFAULT.',
  });
}

function refuseMissing(arn: string): never {
  throw errors.resourceNotFound(`There is no key ${arn} in this account.`, {
    remedy: 'agentcore key list lists those that exist.',
  });
}

function pending(arn: string): Error {
  return errors.validation(`The key ${arn} is going to be deleted.`, {
    remedy: 'Cancel that first: agentcore key cancel-deletion.',
  });
}

/** What one key has wrapped opens in no other's name. */
function contextOf(arn: string): string {
  return JSON.stringify(['agentplatform-key', arn]);
}

function fromResource({ arn, id, accountId, data, createdAt }: Resource<Kept>): StoredKey {
  const { spec, description, createdBy, publicKey, disabled, deletionAt } = data;
  const state = deletionAt !== undefined ? 'PendingDeletion' : disabled ? 'Disabled' : 'Enabled';
  return {
    arn,
    id,
    accountId,
    spec,
    description,
    state,
    deletionAt,
    publicKey,
    createdAt: createdAt.getTime(),
    createdBy,
  };
}
