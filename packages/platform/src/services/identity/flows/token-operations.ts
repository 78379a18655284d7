import type { data } from '@agentplatform/contract';
import type { Caller, ConditionKeys, HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { CredentialProviders } from '../providers/credential-providers.ts';
import type { Oauth2Settings } from '../providers/oauth2-provider.ts';
import { type ProviderRightsDeps, providerRights } from '../providers/provider-rights.ts';
import type { WorkloadTokens } from '../workloads/workload-tokens.ts';
import { checkCustomParameters } from './custom-parameters.ts';
import type { ExchangedTokens } from './exchanged-tokens.ts';
import type { Waiting } from './fresh-tokens.ts';
import type { OauthClients } from './oauth-clients.ts';
import { toWireError } from './provider-error.ts';
import { asSet, type TokenRequest } from './token-request.ts';
import type { UserFederation } from './user-federation.ts';

export interface TokenOperationsDeps extends ProviderRightsDeps {
  providers: CredentialProviders<Oauth2Settings>;
  tokens: WorkloadTokens;
  /** The access token of the agent itself. */
  machine(request: TokenRequest, caller: Caller, waiting: Waiting): Promise<string>;
  exchanged: ExchangedTokens;
  federation: UserFederation;
  clients: Pick<OauthClients, 'need'>;
}

/** What this file serves. */
export const TOKEN_OPERATIONS = ['GetResourceOauth2Token', 'CompleteResourceTokenAuth'] as const;
export type TokenOperation = (typeof TOKEN_OPERATIONS)[number];

/** How agents get tokens of other services, and applications confirm whose consent it was. */
export function tokenOperations(deps: TokenOperationsDeps): HandlersOf<TokenOperation> {
  const { federation, exchanged, machine, clients } = deps;

  const answer = async (
    input: data.GetResourceOauth2TokenRequest,
    ctx: RequestContext,
  ): Promise<data.GetResourceOauth2TokenResponse> => {
    const request = await requestOf(input, ctx, deps);
    checkCustomParameters(request);
    await clients.need(request.provider, ctx);
    switch (input.oauth2Flow) {
      case 'M2M':
        return { accessToken: await machine(request, ctx, ctx) };
      case 'ON_BEHALF_OF_TOKEN_EXCHANGE':
        return { accessToken: await exchanged.get(request, ctx, ctx.signal) };
      case 'USER_FEDERATION': {
        const { sessionUri, resourceOauth2ReturnUrl: returnUrl, customState, forceAuthentication = false } = input;
        const call = { sessionUri, returnUrl, customState, forceAuthentication };
        return federation.get(request, call, { caller: ctx, signal: ctx.signal });
      }
    }
  };

  return {
    GetResourceOauth2Token: {
      resource: providerRights(deps, deps.providers).use,
      handle: (input, ctx) => inWireErrors(answer(input, ctx)),
    },
    CompleteResourceTokenAuth: {
      /** The workload of the session. For an unknown session it is `*`, so that a refusal does not reveal which sessions exist. */
      async resource({ sessionUri }, { accountId }) {
        const back = await federation.returnedTo(sessionUri, accountId);
        const session = back ?? (await federation.sessionOf(sessionUri, accountId));
        return deps.workloadArn(accountId, session?.bearer.workload ?? '*');
      },
      conditions: ({ userIdentifier: { userId } }): ConditionKeys =>
        userId === undefined ? {} : { 'bedrock-agentcore:userid': userId },
      async handle({ sessionUri, userIdentifier }, ctx) {
        await inWireErrors(federation.complete(sessionUri, userIdentifier, ctx));
        return {};
      },
    },
  };
}

/** Rejects with UnauthorizedException and ResourceNotFoundException. */
async function requestOf(
  input: data.GetResourceOauth2TokenRequest,
  { accountId }: RequestContext,
  { tokens, providers }: Pick<TokenOperationsDeps, 'tokens' | 'providers'>,
): Promise<TokenRequest> {
  return {
    bearer: await tokens.open(input.workloadIdentityToken, accountId),
    provider: await providers.get(accountId, input.resourceCredentialProviderName),
    scopes: asSet(input.scopes),
    resources: asSet(input.resources),
    audiences: asSet(input.audiences),
    customParameters: input.customParameters ?? {},
  };
}

async function inWireErrors<Result>(running: Promise<Result>): Promise<Result> {
  try {
    return await running;
  } catch (error) {
    throw toWireError(error);
  }
}
