import { randomUUID } from 'node:crypto';
import type { control } from '@agentplatform/contract';
import type { Logger } from 'pino';
import { type CertificateAuthorityDeps, certificateAuthority } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Outbound } from '../../../kernel/outbound/index.ts';
import type { Caller, RequestContext } from '../../../kernel/service.ts';
import type { Changes, Database, Executor } from '../../../kernel/storage/index.ts';
import type { SecretsPort } from '../../secrets/index.ts';
import { AUTHORIZE_PATH, CALLBACK_PATH } from '../consent/consent-routes.ts';
import type { CredentialProviders } from '../providers/credential-providers.ts';
import type { Oauth2Settings } from '../providers/oauth2-provider.ts';
import type { TokenVaults } from '../vault/token-vaults.ts';
import type { WorkloadIdentities } from '../workloads/workload-identities.ts';
import { type UserTokenDeps, userOfToken } from '../workloads/workload-user.ts';
import type { Authorization } from './authorization.ts';
import { AuthorizationServers } from './authorization-servers.ts';
import { Authorizations } from './authorizations.ts';
import { ExchangedTokens } from './exchanged-tokens.ts';
import { FreshTokens, type Waiting } from './fresh-tokens.ts';
import { Grants } from './grants.ts';
import { MachineTokens } from './machine-tokens.ts';
import { OauthClients } from './oauth-clients.ts';
import { ProviderChecks, TRIAL_AGENT } from './provider-checks.ts';
import { type Forgotten, Refreshes } from './refreshes.ts';
import { RevocationEndpoint } from './revocation-endpoint.ts';
import { StoredTokens } from './stored-tokens.ts';
import { TokenEndpoint } from './token-endpoint.ts';
import type { TokenRequest } from './token-request.ts';
import { UserFederation } from './user-federation.ts';
import { UserTokens } from './user-tokens.ts';

/** What the flows need of the platform beside its database. */
export interface FlowSettings {
  /** The guard: who makes a provider names addresses. */
  outbound: Outbound;
  /** Reads certificates that a bucket holds. */
  readObject: CertificateAuthorityDeps['readObject'];
  /** Where browsers reach the platform, such as `https://agents.example.com`; it may have a path. */
  publicUrl(): string;
  /** From 0 up to 1. */
  random(): number;
  log: Logger;
  /** The same in each life of this server. */
  serverId: string;
}

export interface FlowsDeps extends FlowSettings, UserTokenDeps {
  database: Database;
  changes: Changes;
  clock: Clock;
  stored: SecretsPort;
  vaults: TokenVaults;
  providers: CredentialProviders<Oauth2Settings>;
  identities: WorkloadIdentities;
}

/** How tokens of other services come about: the parts, put together. */
export function createFlows(deps: FlowsDeps) {
  const { stored, providers, identities, publicUrl } = deps;
  const base = (): string => publicUrl().replace(/\/$/, '');
  const callbackUrl = (providerId: string): string => `${base()}${CALLBACK_PATH}/${providerId}`;
  const endpoint = new TokenEndpoint(deps);
  const clients = new OauthClients({
    ...deps,
    servers: new AuthorizationServers(deps),
    keys: stored,
    newId: randomUUID,
  });
  const tokens = new StoredTokens(deps);
  const authorizations = new Authorizations(deps);
  const refreshes = new Refreshes(deps);
  // A test of a provider is an agent of its own, which nobody has made.
  const returnUrls = async (accountId: string, workload: string): Promise<readonly string[] | undefined> =>
    workload === TRIAL_AGENT ? [] : (await identities.find(accountId, workload))?.allowedResourceOauth2ReturnUrls;
  const current = async (request: TokenRequest): Promise<TokenRequest | undefined> => {
    const { accountId, workload } = request.bearer;
    const provider = await providers.read(accountId, request.provider.name);
    const same = provider?.data.id === request.provider.data.id && (await returnUrls(accountId, workload));
    return same ? { ...request, provider } : undefined;
  };
  const fresh = new FreshTokens({ ...deps, tokens, refreshes, current });
  const parts = { ...deps, endpoint, clients, fresh, tokens };
  const machineTokens = new MachineTokens(parts);
  const machine = (request: TokenRequest, caller: Caller, waiting: Waiting): Promise<string> =>
    machineTokens.get(request, caller, waiting);
  const exchanged = new ExchangedTokens({ ...parts, actorToken: machine });
  const federation = new UserFederation({
    ...parts,
    authorizations,
    refreshes,
    returnUrls,
    userTokens: new UserTokens(parts),
    callbackUrl,
    consentUrl: (sessionUri) => `${base()}${AUTHORIZE_PATH}?${new URLSearchParams({ request_uri: sessionUri })}`,
  });
  const grants = new Grants({ ...parts, refreshes, revocation: new RevocationEndpoint(deps) });
  // First what tokens come of: whatever is on its way then is written before, and forgotten, or not at all.
  const forget = async (of: Forgotten, tx: Executor): Promise<void> => {
    await refreshes.forget(of, tx);
    await authorizations.forget(of, tx);
    await tokens.forget(of, tx);
  };
  // What they were sealed with is gone.
  deps.vaults.onReset((accountId, tx) => forget({ accountId }, tx));
  return {
    machine,
    exchanged,
    federation,
    clients,
    endpoint,
    grants,
    forget,
    start: () => refreshes.start(),
    callbackUrl,
    newProviderId: randomUUID,
    checks: new ProviderChecks({
      ...{ ...parts, exchanged, federation, grants, callbackUrl },
      userOfToken: (token, accountId) => userOfToken(token, accountId, deps),
    }),
    /** The provider of an authorization, and the host of its page; undefined when it is gone. Rejects with `ProviderError`. */
    async providerOf({ bearer, providerArn, providerId }: Authorization) {
      const provider = await providers.find(bearer.accountId, providerArn.slice(providerArn.lastIndexOf('/') + 1));
      if (provider?.data.id !== providerId) return undefined;
      const { authorization_endpoint: address } = await clients.server(provider.data);
      return { provider, host: address === undefined ? provider.name : new URL(address).host };
    },
    certificateAuthority: (named: readonly control.CertificateConfiguration[] | undefined, ctx: RequestContext) =>
      certificateAuthority(named, 'certificateConfigurations', ctx, {
        ...deps,
        readSecret: async (arn, caller) => (await stored.read(arn, undefined, caller)).value,
      }),
  };
}
