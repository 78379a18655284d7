import { InvokeAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateOauth2CredentialProviderCommand,
  GetOauth2CredentialProviderCommand,
  type OnBehalfOfTokenExchangeConfigType,
  UpdateOauth2CredentialProviderCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { Browser } from '../../packages/platform/src/services/identity/flows/testing/browser.ts';
import {
  type ConsentProvider,
  type ConsentProviderOptions,
  startConsentProvider,
} from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import type { Clients } from './clients.ts';
import { sessionId } from './invoke.ts';

/**
 * A real authorization server, and a credential provider of that name that leads to it. The platform must be allowed to call 127.0.0.0/8.
 * `onBehalfOf`: how it exchanges users' tokens.
 */
export async function connectConsentProvider(
  { control }: Clients,
  name: string,
  onBehalfOf?: OnBehalfOfTokenExchangeConfigType,
  options: Pick<ConsentProviderOptions, 'lifeSeconds' | 'saysSeconds'> = {},
): Promise<ConsentProvider> {
  const settings = (discoveryUrl: string, clientId: string, clientSecret: string) => ({
    name,
    credentialProviderVendor: 'CustomOauth2' as const,
    oauth2ProviderConfigInput: {
      customOauth2ProviderConfig: {
        oauthDiscovery: { discoveryUrl },
        clientId,
        clientSecret,
        ...(onBehalfOf && { onBehalfOfTokenExchangeConfig: onBehalfOf }),
      },
    },
  });
  // Its callback address is known only once it is made, and the server takes only those that it was told.
  const later = 'https://later.example/.well-known/openid-configuration';
  await control.send(new CreateOauth2CredentialProviderCommand(settings(later, 'later', 'later')));
  const { callbackUrl = '' } = await control.send(new GetOauth2CredentialProviderCommand({ name }));
  const provider = await startConsentProvider({ ...options, redirectUris: [callbackUrl] });
  const { discoveryUrl, clientId, clientSecret } = provider;
  await control.send(new UpdateOauth2CredentialProviderCommand(settings(discoveryUrl, clientId, clientSecret)));
  return provider;
}

/** What a person does who opens the address and allows it, in a browser of his own; the text of the last page. */
export async function consentTo(url: string): Promise<string> {
  const browser = new Browser();
  const { location } = await browser.decide(url);
  const { answer } = await browser.follow(location ?? '');
  return (await answer?.text()) ?? '';
}

/** What an agent has said of a user's token. */
export interface FederationTold {
  /** Where it has led the user, who consented there. */
  url?: string;
  /** The text of the last page that he saw. */
  page?: string;
  token?: string;
}

/** Has an agent ask for that user's token (`{ do: 'federation', user }`), hears what it streams of that, and consents where it leads to a page. */
export async function federationOf({ data }: Clients, agentRuntimeArn: string, user: string): Promise<FederationTold> {
  const { response } = await data.send(
    new InvokeAgentRuntimeCommand({
      agentRuntimeArn,
      runtimeSessionId: sessionId(user),
      runtimeUserId: user,
      payload: Buffer.from(JSON.stringify({ do: 'federation', user })),
    }),
  );
  const told: FederationTold = {};
  let text = '';
  for await (const chunk of response?.transformToWebStream() ?? []) {
    text += Buffer.from(chunk).toString();
    for (const [, event = ''] of text.matchAll(/^data: (.+)\n\n/gm)) Object.assign(told, JSON.parse(event));
    if (told.url !== undefined) told.page ??= await consentTo(told.url);
  }
  return told;
}
