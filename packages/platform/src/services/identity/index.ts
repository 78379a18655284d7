import type { Paginator } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import type { Secrets } from '../../kernel/secrets/index.ts';
import type { Service } from '../../kernel/service.ts';
import type { Changes, Database, Executor } from '../../kernel/storage/index.ts';
import type { SecretsPort } from '../secrets/index.ts';
import {
  type ApiKeyData,
  type ApiKeyOperation,
  apiKeyOperations,
  parseApiKeyData,
} from './providers/api-key-operations.ts';
import { CredentialProviders } from './providers/credential-providers.ts';
import { type PaymentOperation, paymentOperations } from './providers/payment-operations.ts';
import { parsePaymentData } from './providers/payment-provider.ts';
import { ProviderSecrets } from './providers/provider-secrets.ts';
import { customerKeys } from './vault/customer-keys.ts';
import { TokenVaults } from './vault/token-vaults.ts';
import { type VaultOperation, vaultOperations } from './vault/vault-operations.ts';
import { WorkloadIdentities, type WorkloadOwner } from './workloads/workload-identities.ts';
import { WORKLOAD_IDENTITY_KIND, workloadNameOf } from './workloads/workload-identity.ts';
import { type WorkloadOperation, workloadOperations } from './workloads/workload-operations.ts';
import { type WorkloadBearer, type WorkloadToken, WorkloadTokens } from './workloads/workload-tokens.ts';
import { type UserTokenDeps, userOfToken, type WorkloadUser } from './workloads/workload-user.ts';

export { identityMigrations } from './tables.ts';
export type { WorkloadUser };

export interface IdentityServiceDeps extends UserTokenDeps {
  database: Database;
  changes: Changes;
  secrets: Secrets;
  /** Secrets and keys with an ARN of their own. */
  stored: SecretsPort;
  paginator: Paginator;
  clock: Clock;
  region: string;
  /** Of the owner. */
  accountId: string;
  /** 32 bytes that workload access tokens are sealed with. */
  tokenKey: Uint8Array;
  /** How long such a token counts. */
  tokenLifeMs: number;
}

/** What services whose resources are workloads use of it. */
export interface IdentityPort {
  /** ARN of the identity of that name. */
  arnOf(accountId: string, name: string): string;
  /** Makes a resource's identity in the transaction that makes the resource; it goes with the resource's children. */
  link(owner: WorkloadOwner, tx: Executor): Promise<void>;
  /** Removes what the resource's children do not take with them, in the transaction that removes the resource and before these. */
  unlink(owner: WorkloadOwner, tx: Executor): Promise<void>;
  /** Where users of that workload may be sent back to: the first such address that a header can carry. */
  callbackUrl(accountId: string, name: string): Promise<string | undefined>;
  /** What the change feed calls a change of an identity. */
  topic: string;
  /** The name of an identity by its ARN. */
  nameOf(arn: string): string;
  /** Touches no database. Throws ValidationException when the user's names are too long. */
  issueToken(bearer: WorkloadBearer): WorkloadToken;
}

/** What this service serves. */
export type IdentityOperation = WorkloadOperation | VaultOperation | ApiKeyOperation | PaymentOperation;

/** Identity: agents as callers of their own, and tokens that say which of them works for whom (spec: Identity). */
export function createIdentityService(deps: IdentityServiceDeps): Service<IdentityOperation, IdentityPort> {
  const { tokenKey: key, tokenLifeMs: lifeMs, clock, stored, accountId } = deps;
  const identities = new WorkloadIdentities(deps);
  const find = identities.find.bind(identities);
  const tokens = new WorkloadTokens({ key, lifeMs, clock, find });
  const vaults = new TokenVaults({ ...deps, keys: customerKeys(stored) });
  const providerSecrets = new ProviderSecrets({ ...deps, externals: stored, newSecretSuffix: stored.newSuffix });
  const apiKeys = new CredentialProviders<ApiKeyData>({
    ...deps,
    kind: 'api-key-credential-provider',
    parse: parseApiKeyData,
    secrets: providerSecrets,
  });
  const payments = new CredentialProviders({
    ...deps,
    kind: 'payment-credential-provider',
    parse: parsePaymentData,
    secrets: providerSecrets,
  });
  const rights = { vaults, tokens, workloadArn: (account: string, name: string) => identities.arnOf(account, name) };
  return {
    operations: {
      ...workloadOperations({
        ...deps,
        identities,
        tokens,
        userOfToken: (token, accountId) => userOfToken(token, accountId, deps),
      }),
      ...vaultOperations({ ...deps, vaults, keys: stored }),
      ...apiKeyOperations({ ...deps, ...rights, apiKeys }),
      ...paymentOperations({ ...deps, ...rights, payments }),
    },
    port: {
      arnOf: (accountId, name) => identities.arnOf(accountId, name),
      link: (owner, tx) => identities.link(owner, tx),
      unlink: (owner, tx) => deps.stored.agents.forget(owner, tx),
      callbackUrl: (accountId, name) => identities.callbackUrl(accountId, name),
      topic: WORKLOAD_IDENTITY_KIND,
      nameOf: workloadNameOf,
      issueToken: (bearer) => tokens.issue(bearer),
    },
    // Tags and policies can be put on it before anything is in it.
    start: async () => void (await vaults.get(accountId)),
    stop: async () => undefined,
  };
}
