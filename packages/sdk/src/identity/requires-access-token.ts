import {
  GetResourceOauth2TokenCommand,
  type GetResourceOauth2TokenCommandInput,
} from '@aws-sdk/client-bedrock-agentcore';
import { getContext } from '../context.ts';
import { type ConsentOptions, tokenAfterConsent } from './consent.ts';
import { type Handing, handing } from './handing.ts';
import { type IdentityOptions, lazyClient } from './identity-client.ts';
import { workloadToken } from './workload-token.ts';

/** For the agent itself; for a user who consents; for a user whose own token came with the request. */
export type AuthFlow = 'M2M' | 'USER_FEDERATION' | 'ON_BEHALF_OF_TOKEN_EXCHANGE';

export interface AccessTokenOptions extends IdentityOptions, ConsentOptions {
  /** Name of the OAuth2 credential provider. */
  providerName: string;
  scopes: string[];
  authFlow: AuthFlow;
  resources?: string[];
  audiences?: string[];
  /** Where the user's browser goes after the consent; the workload identity must allow it. Default: that of the request. */
  callbackUrl?: string;
  /** Asks the user anew though he has consented. */
  forceAuthentication?: boolean;
  /** Comes back to `callbackUrl` with the browser. */
  customState?: string;
  /** Go to the provider's page beside those of OAuth. */
  customParameters?: Record<string, string>;
}

/**
 * Wraps a function whose last argument is to be an access token: callers leave it out. Each call asks the platform, which keeps tokens and renews
 * them. The wrapped function rejects with `ConsentError` when the user did not consent, and with the errors of the AWS SDK.
 * Source: spec "Identity", and the vendor's `requires_access_token`.
 */
export function requiresAccessToken(options: AccessTokenOptions): Handing {
  const client = lazyClient(options);
  return handing(async () => {
    const request = requestOf(options, options.workloadIdentityToken ?? (await workloadToken(client())));
    return tokenAfterConsent(
      (more) => client().send(new GetResourceOauth2TokenCommand({ ...request, ...more })),
      options,
      getContext()?.signal,
    );
  });
}

function requestOf(options: AccessTokenOptions, workloadIdentityToken: string): GetResourceOauth2TokenCommandInput {
  const { providerName, authFlow, scopes, resources, audiences } = options;
  const { forceAuthentication, customState, customParameters } = options;
  return {
    workloadIdentityToken,
    resourceCredentialProviderName: providerName,
    oauth2Flow: authFlow,
    scopes,
    resources,
    audiences,
    resourceOauth2ReturnUrl: options.callbackUrl ?? getContext()?.oauth2CallbackUrl,
    forceAuthentication,
    customState,
    customParameters,
  };
}
