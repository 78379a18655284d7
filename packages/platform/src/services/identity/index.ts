import type { Paginator } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import type { RouteSet } from '../../kernel/http/index.ts';
import type { Secrets } from '../../kernel/secrets/index.ts';
import type { Service } from '../../kernel/service.ts';
import { type Changes, type Database, type Executor, Known } from '../../kernel/storage/index.ts';
import type { SecretsPort } from '../secrets/index.ts';
import { consentRoutes } from './consent/consent-routes.ts';
import { GrantLinks } from './consent/grant-link.ts';
import { grantsRoutes } from './consent/grants-routes.ts';
import type { ConsentPortal } from './consent/portal.ts';
import { PortalLogin } from './consent/portal-login.ts';
import { PORTAL_OPERATIONS, portalOperations } from './consent/portal-operations.ts';
import { PORTALS_PATH, portalRoutes } from './consent/portal-routes.ts';
import { PortalSessions } from './consent/portal-sessions.ts';
import { PortalSignIns } from './consent/portal-sign-ins.ts';
import { Portals } from './consent/portals.ts';
import { createFlows, type FlowSettings } from './flows/index.ts';
import { providerCheckRoutes } from './flows/provider-check-routes.ts';
import { TOKEN_OPERATIONS, tokenOperations } from './flows/token-operations.ts';
import { API_KEY_OPERATIONS, type ApiKeyData, apiKeyOperations, storedApiKey } from './providers/api-key-operations.ts';
import { CredentialProviders, MOST_PROVIDERS } from './providers/credential-providers.ts';
import { type Oauth2Provider, type Oauth2Settings, storedOauth2 } from './providers/oauth2-provider.ts';
import { OAUTH2_PROVIDER_OPERATIONS, oauth2ProviderOperations } from './providers/oauth2-provider-operations.ts';
import { PAYMENT_OPERATIONS, paymentOperations } from './providers/payment-operations.ts';
import { storedPayment } from './providers/payment-provider.ts';
import { ProviderSecrets } from './providers/provider-secrets.ts';
import { customerKeys } from './vault/customer-keys.ts';
import { TokenVaults } from './vault/token-vaults.ts';
import { VAULT_OPERATIONS, vaultOperations } from './vault/vault-operations.ts';
import { type OauthCredentialRequest, WorkloadCredentials } from './workload-credentials.ts';
import { allowedWorkloads, WORKLOAD_TOKEN_HEADER } from './workloads/allowed-workloads.ts';
import { WorkloadIdentities, type WorkloadOwner } from './workloads/workload-identities.ts';
import { WORKLOAD_IDENTITY_KIND, type WorkloadIdentity, workloadNameOf } from './workloads/workload-identity.ts';
import { WORKLOAD_OPERATIONS, workloadOperations } from './workloads/workload-operations.ts';
import { type WorkloadBearer, type WorkloadToken, WorkloadTokens } from './workloads/workload-tokens.ts';
import { type UserTokenDeps, userOfToken, type WorkloadUser } from './workloads/workload-user.ts';

export { identityMigrations, identityRetention } from './tables.ts';
export type { OauthCredentialRequest, WorkloadUser };

export interface IdentityServiceDeps extends UserTokenDeps, FlowSettings {
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
  /** The last ten letters and digits of a new id. */
  newIdSuffix(): string;
  roleExists(arn: string): Promise<boolean>;
  /** Whether the policies of a role allow an action. */
  roleMay(roleArn: string, action: string, resource: string): boolean;
  /** 32 bytes that links to people's grants are sealed with. */
  linkKey: Uint8Array;
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
  /** Whose token it is. Rejects with UnauthorizedException for one that is none of that account or counts no more. */
  openToken(token: string, accountId: string): Promise<WorkloadBearer>;
  /** The headers by which a request says that a workload sends it, for no user. Touches no database. */
  headersOf(accountId: string, workload: string): Record<string, string>;
  /** Rejects with AccessDeniedException unless a request with these headers comes from a workload of that account that is allowed. */
  requireWorkload: ReturnType<typeof allowedWorkloads>;
  /** Credentials of providers, for the workload of a resource and in the name of its role. */
  credentials: Pick<WorkloadCredentials, 'kindOf' | 'apiKey' | 'oauth2Token'>;
}

/** What this service serves. */
export const IDENTITY_OPERATIONS = [
  ...WORKLOAD_OPERATIONS,
  ...VAULT_OPERATIONS,
  ...API_KEY_OPERATIONS,
  ...OAUTH2_PROVIDER_OPERATIONS,
  ...PAYMENT_OPERATIONS,
  ...TOKEN_OPERATIONS,
  ...PORTAL_OPERATIONS,
] as const;
export type IdentityOperation = (typeof IDENTITY_OPERATIONS)[number];

/** In memory, those that were used last. */
const KNOWN_WORKLOADS = 5_000;

/** Identity: agents as callers of their own, and tokens that say which of them works for whom (spec: Identity). */
export function createIdentityService(
  deps: IdentityServiceDeps,
): Service<IdentityOperation, IdentityPort> & { routes: readonly RouteSet[] } {
  const { tokenKey: key, tokenLifeMs: lifeMs, clock, stored, accountId } = deps;
  const identities = new WorkloadIdentities(deps);
  const known = new Known<WorkloadIdentity>(WORKLOAD_IDENTITY_KIND, deps.changes, KNOWN_WORKLOADS);
  const find = (account: string, name: string) =>
    known.get(identities.arnOf(account, name), () => identities.find(account, name));
  const tokens = new WorkloadTokens({ key, lifeMs, clock, find });
  const vaults = new TokenVaults({ ...deps, keys: customerKeys(stored) });
  const providerSecrets = new ProviderSecrets({ ...deps, externals: stored, newSecretSuffix: stored.newSuffix });
  const apiKeys = new CredentialProviders<ApiKeyData>({
    ...deps,
    kind: 'api-key-credential-provider',
    shape: storedApiKey,
    secrets: providerSecrets,
  });
  const payments = new CredentialProviders({
    ...deps,
    kind: 'payment-credential-provider',
    shape: storedPayment,
    secrets: providerSecrets,
  });
  const oauth2 = new CredentialProviders<Oauth2Settings>({
    ...deps,
    kind: 'oauth2-credential-provider',
    shape: storedOauth2,
    secrets: providerSecrets,
  });
  const flows = createFlows({ ...deps, vaults, providers: oauth2, identities });
  const links = new GrantLinks({ key: deps.linkKey, clock });
  const rights = { vaults, tokens, workloadArn: (account: string, name: string) => identities.arnOf(account, name) };
  const portalUrl = (id: string): string => `${deps.publicUrl().replace(/\/$/, '')}${PORTALS_PATH}/${id}`;
  const sessions = new PortalSessions(deps);
  const portals = new Portals({ ...deps, providers: oauth2, sessions });
  const pages = {
    ...{ ...deps, ...rights, ...flows, links, portals, sessions, portalUrl },
    signIns: new PortalSignIns(deps),
    login: new PortalLogin({ ...deps, ...flows }),
    providersOf: (portal: ConsentPortal) => providersOf(portal, oauth2, deps.roleMay),
  };
  return {
    operations: {
      ...workloadOperations({
        ...deps,
        identities,
        tokens,
        userOfToken: (token, accountId) => userOfToken(token, accountId, deps),
        forget: flows.forget,
      }),
      ...vaultOperations({ ...deps, vaults, keys: stored }),
      ...apiKeyOperations({ ...deps, ...rights, apiKeys }),
      ...paymentOperations({ ...deps, ...rights, payments }),
      ...oauth2ProviderOperations({ ...deps, ...rights, ...flows, providers: oauth2 }),
      ...tokenOperations({ ...rights, ...flows, providers: oauth2 }),
      ...portalOperations({ ...deps, portals, portalUrl }),
    },
    routes: [
      consentRoutes(pages),
      grantsRoutes(pages),
      portalRoutes(pages),
      providerCheckRoutes({ ...flows, providers: oauth2 }),
    ],
    port: {
      arnOf: (accountId, name) => identities.arnOf(accountId, name),
      link: (owner, tx) => identities.link(owner, tx),
      async unlink(owner, tx) {
        await deps.stored.agents.forget(owner, tx);
        await flows.forget({ accountId: owner.accountId, workload: owner.id }, tx);
      },
      callbackUrl: (accountId, name) => identities.callbackUrl(accountId, name),
      topic: WORKLOAD_IDENTITY_KIND,
      nameOf: workloadNameOf,
      issueToken: (bearer) => tokens.issue(bearer),
      openToken: (token, account) => tokens.open(token, account),
      headersOf: (account, workload) => ({
        [WORKLOAD_TOKEN_HEADER]: tokens.issue({ accountId: account, workload, user: undefined }).token,
      }),
      requireWorkload: allowedWorkloads({ tokens, find }),
      credentials: new WorkloadCredentials({ ...rights, ...flows, apiKeys, providers: oauth2 }),
    },
    async start() {
      // Tags and policies can be put on it before anything is in it.
      await vaults.get(accountId);
      await flows.start();
    },
    stop: async () => undefined,
  };
}

/** Providers that the portal's role may get tokens of, by name. The targets of the gateways that it names are not read. */
async function providersOf(
  { accountId, executionRoleArn }: ConsentPortal,
  providers: CredentialProviders<Oauth2Settings>,
  roleMay: IdentityServiceDeps['roleMay'],
): Promise<Oauth2Provider[]> {
  const { items } = await providers.list(accountId, { limit: MOST_PROVIDERS, after: undefined });
  return items
    .filter(({ arn }) => roleMay(executionRoleArn, 'bedrock-agentcore:GetResourceOauth2Token', arn))
    .toSorted((a, b) => a.name.localeCompare(b.name));
}
