import { type data, errors } from '@agentplatform/contract';
import type { Caller } from '../../kernel/service.ts';
import { toWireError } from './flows/provider-error.ts';
import type { TokenOperationsDeps } from './flows/token-operations.ts';
import { asSet } from './flows/token-request.ts';
import type { ApiKeyData } from './providers/api-key-operations.ts';
import type { CredentialProviders } from './providers/credential-providers.ts';
import type { WorkloadBearer } from './workloads/workload-tokens.ts';

export interface WorkloadCredentialsDeps
  extends Pick<TokenOperationsDeps, 'vaults' | 'workloadArn' | 'providers' | 'machine' | 'exchanged' | 'federation'> {
  apiKeys: CredentialProviders<ApiKeyData>;
}

/** What a service's resource asks for in the name of its role. */
export interface CredentialRequest {
  providerArn: string;
  /** The resource's own workload, and whom it acts for. */
  bearer: WorkloadBearer;
  /** Whose policies are asked: those of the resource's role. */
  caller: Caller;
}

export interface OauthCredentialRequest extends CredentialRequest {
  flow: data.Oauth2FlowType;
  scopes: readonly string[];
  customParameters?: Readonly<Record<string, string>> | undefined;
  /** Where a person is sent back to after he has consented. */
  returnUrl?: string | undefined;
  /** A consent that was begun: what has become of it. */
  sessionUri?: string | undefined;
  signal: AbortSignal;
}

/** The credentials of providers for resources of other services, such as gateways: with the rights that an agent's own request asks for. */
export class WorkloadCredentials {
  readonly #deps: WorkloadCredentialsDeps;

  constructor(deps: WorkloadCredentialsDeps) {
    this.#deps = deps;
  }

  /** Which kind of provider an ARN of this account names, and that there is one. Undefined for none. */
  async kindOf(accountId: string, providerArn: string): Promise<'api-key' | 'oauth2' | undefined> {
    const { apiKeys, providers } = this.#deps;
    const name = nameIn(providerArn);
    if (apiKeys.arnOf(accountId, name) === providerArn) return (await apiKeys.find(accountId, name)) && 'api-key';
    if (providers.arnOf(accountId, name) === providerArn) return (await providers.find(accountId, name)) && 'oauth2';
    return undefined;
  }

  /** Rejects with AccessDeniedException, ResourceNotFoundException. */
  async apiKey(request: CredentialRequest): Promise<string> {
    const { apiKeys } = this.#deps;
    const { providerArn, bearer, caller } = request;
    await this.#authorize('GetResourceApiKey', request);
    const provider = await apiKeys.get(bearer.accountId, nameIn(providerArn));
    const key = await apiKeys.secret(provider, 'apiKey', caller);
    if (key) return key.reveal();
    throw errors.resourceNotFound(`The API key credential provider ${provider.name} has no key any more.`);
  }

  /** A token, or where a person gives consent. Rejects as GetResourceOauth2Token does. */
  async oauth2Token(request: OauthCredentialRequest): Promise<data.GetResourceOauth2TokenResponse> {
    const { providers, machine, exchanged, federation } = this.#deps;
    const { providerArn, bearer, caller, flow, signal, customParameters = {}, returnUrl, sessionUri } = request;
    await this.#authorize('GetResourceOauth2Token', request);
    const provider = await providers.get(bearer.accountId, nameIn(providerArn));
    const asked = { provider, bearer, scopes: asSet(request.scopes), resources: [], audiences: [], customParameters };
    try {
      if (flow === 'M2M') return { accessToken: await machine(asked, caller, request) };
      if (flow === 'ON_BEHALF_OF_TOKEN_EXCHANGE') return { accessToken: await exchanged.get(asked, caller, signal) };
      const call = { sessionUri, returnUrl, customState: undefined, forceAuthentication: false };
      return await federation.get(asked, call, { caller, signal });
    } catch (error) {
      throw toWireError(error);
    }
  }

  async #authorize(operation: string, { providerArn, bearer, caller }: CredentialRequest): Promise<void> {
    const { vaults, workloadArn } = this.#deps;
    const { accountId, workload } = bearer;
    for (const resource of [providerArn, workloadArn(accountId, workload), vaults.arnOf(accountId)])
      await caller.require(`bedrock-agentcore:${operation}`, resource);
  }
}

function nameIn(arn: string): string {
  return arn.slice(arn.lastIndexOf('/') + 1);
}
