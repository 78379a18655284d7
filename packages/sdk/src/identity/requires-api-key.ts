import { GetResourceApiKeyCommand } from '@aws-sdk/client-bedrock-agentcore';
import { type Handing, handing } from './handing.ts';
import { type IdentityOptions, lazyClient } from './identity-client.ts';
import { workloadToken } from './workload-token.ts';

export interface ApiKeyOptions extends IdentityOptions {
  /** Name of the API key credential provider. */
  providerName: string;
}

/**
 * Wraps a function whose last argument is to be an API key: callers leave it out. Each call asks the platform, which has the newest key. The
 * wrapped function rejects with the errors of the AWS SDK (ResourceNotFoundException, AccessDeniedException …).
 * Source: spec "Identity", and the vendor's `requires_api_key`.
 */
export function requiresApiKey({ providerName, ...options }: ApiKeyOptions): Handing {
  const client = lazyClient(options);
  return handing(async () => {
    const workloadIdentityToken = options.workloadIdentityToken ?? (await workloadToken(client()));
    const wish = { workloadIdentityToken, resourceCredentialProviderName: providerName };
    const { apiKey } = await client().send(new GetResourceApiKeyCommand(wish));
    if (apiKey === undefined) throw new Error(`The platform gave no key of ${providerName}.`);
    return apiKey;
  });
}
