import { errors } from '@agentplatform/contract';
import type { Secret, Secrets } from '../../../kernel/secrets/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import type { Executor } from '../../../kernel/storage/index.ts';
import { type CredentialProvider, PROVIDER_WORDS, type ProviderKind } from './credential-provider.ts';
import {
  type ExternalSecrets,
  type GivenSecret,
  type KeptSecret,
  type SecretChange,
  secretChange,
} from './provider-secret.ts';

export interface ProviderSecretsDeps {
  secrets: Pick<Secrets, 'put' | 'get' | 'delete'>;
  externals: ExternalSecrets;
  region: string;
  /** What ends the ARN of a secret: 6 letters and digits. */
  newSecretSuffix(): string;
}

/** Whose secrets. */
export interface SecretOwner {
  kind: ProviderKind;
  arn: string;
  accountId: string;
  name: string;
}

/** Where the secrets of a provider stand from now on, and what of them has to be written. */
export interface TakenSecrets {
  kept: Record<string, KeptSecret>;
  /** In the transaction that writes the provider. */
  write(tx: Executor): Promise<void>;
}

/**
 * The secrets of credential providers: managed ones, given once and sealed in the kernel's secrets under the provider's ARN and the field;
 * and external ones, which are read at use with the right of whoever uses them.
 */
export class ProviderSecrets {
  readonly #deps: ProviderSecretsDeps;

  constructor(deps: ProviderSecretsDeps) {
    this.#deps = deps;
  }

  /**
   * Takes what a request gives over what stands already. Rejects with ValidationException by the wire's names of the fields; an external
   * secret is read once as the caller, so that what cannot work is refused now.
   */
  async take(
    owner: SecretOwner,
    given: Readonly<Record<string, GivenSecret>>,
    { before = {}, caller }: { before?: Readonly<Record<string, KeptSecret>>; caller: Caller },
  ): Promise<TakenSecrets> {
    const kept: Record<string, KeptSecret> = {};
    const writes: ((tx: Executor) => Promise<unknown>)[] = [];
    for (const [field, one] of Object.entries(given)) {
      const change = secretChange(field, one);
      const old = before[field];
      if (!change && !old && !one.optional) throw errors.invalidField(field, 'is required');
      kept[field] = await this.#place(owner, field, { change, old, caller });
      const name = this.#nameOf(owner, field);
      if (change?.source === 'MANAGED') writes.push((tx) => this.#deps.secrets.put(name, change.value, tx));
      if (change?.source === 'EXTERNAL') writes.push((tx) => this.#deps.secrets.delete(name, tx));
    }
    return {
      kept,
      async write(tx) {
        for (const write of writes) await write(tx);
      },
    };
  }

  /**
   * The secret of that field, undefined where none was given. An external one is read as the caller: rejects with AccessDeniedException
   * where he may not, ResourceNotFoundException when it is gone.
   */
  async read(provider: CredentialProvider<unknown>, field: string, caller: Caller): Promise<Secret | undefined> {
    const kept = provider.secrets[field];
    if (kept?.source === 'EXTERNAL')
      return (await this.#deps.externals.read(kept.secretArn, kept.jsonKey, caller)).value;
    return kept?.set ? this.#deps.secrets.get(this.#nameOf(provider, field)) : undefined;
  }

  /** In the transaction that removes the provider. */
  async forget(provider: CredentialProvider<unknown>, tx: Executor): Promise<void> {
    for (const field of Object.keys(provider.secrets))
      await this.#deps.secrets.delete(this.#nameOf(provider, field), tx);
  }

  async #place(
    owner: SecretOwner,
    field: string,
    { change, old, caller }: { change: SecretChange; old: KeptSecret | undefined; caller: Caller },
  ): Promise<KeptSecret> {
    if (change?.source === 'EXTERNAL') {
      const { secretId, jsonKey } = change;
      const { arn } = await this.#deps.externals.read(secretId, jsonKey, caller);
      return { source: 'EXTERNAL', secretArn: arn, jsonKey };
    }
    if (!change && old) return old;
    const secretArn = old?.source === 'MANAGED' ? old.secretArn : this.#managedArn(owner, field);
    return { source: 'MANAGED', secretArn, set: change !== undefined };
  }

  /** What the wire shows of a managed secret; a name that nobody can read it by. */
  #managedArn({ kind, accountId, name }: SecretOwner, field: string): string {
    const { region, newSecretSuffix } = this.#deps;
    const { folder } = PROVIDER_WORDS[kind];
    return `arn:aws:secretsmanager:${region}:${accountId}:secret:bedrock-agentcore-identity!default/${folder}/${name}/${field}-${newSecretSuffix()}`;
  }

  #nameOf({ accountId, arn }: Pick<SecretOwner, 'accountId' | 'arn'>, field: string) {
    return { accountId, name: `${arn}#${field}` };
  }
}
