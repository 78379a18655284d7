import type {
  ClientAuthenticationMethodType,
  CreateOauth2CredentialProviderRequest,
  CredentialProviderVendorType,
  OnBehalfOfTokenExchangeConfigType,
  OnBehalfOfTokenExchangeGrantTypeType,
  SecretReference,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';

/** Which server a provider leads to, and as which client. */
export interface Oauth2Wish {
  name: string;
  vendor: CredentialProviderVendorType;
  clientId: string;
  clientSecret?: string;
  /** A secret with an ARN, in the place of one that is given. */
  secret?: SecretReference;
  discoveryUrl?: string;
  issuer?: string;
  authorizationEndpoint?: string;
  tokenEndpoint?: string;
  tenant?: string;
  clientAuthentication?: ClientAuthenticationMethodType;
  /** How a custom server gives tokens for a user whose token the agent has. */
  onBehalfOf?: OnBehalfOfTokenExchangeGrantTypeType;
  /** Scopes of the token by which the agent says that it is the one who acts; with `TOKEN_EXCHANGE`. */
  actorScopes?: string[];
}

/** As the wire has them, without their ending `Oauth2`. */
const VENDORS: readonly CredentialProviderVendorType[] = [
  ...(['CustomOauth2', 'GoogleOauth2', 'GithubOauth2', 'SlackOauth2', 'SalesforceOauth2'] as const),
  ...(['MicrosoftOauth2', 'AtlassianOauth2', 'LinkedinOauth2', 'XOauth2', 'OktaOauth2', 'OneLoginOauth2'] as const),
  ...(['PingOneOauth2', 'FacebookOauth2', 'YandexOauth2', 'RedditOauth2', 'ZoomOauth2', 'TwitchOauth2'] as const),
  ...(['SpotifyOauth2', 'DropboxOauth2', 'NotionOauth2', 'HubspotOauth2', 'CyberArkOauth2'] as const),
  ...(['FusionAuthOauth2', 'Auth0Oauth2', 'CognitoOauth2'] as const),
];

/** The wire's name of a vendor: `google` is `GoogleOauth2`. Throws a `CliError` (usage) that names all. */
export function vendorOf(text: string): CredentialProviderVendorType {
  const plain = (name: string): string => name.toLowerCase().replace(/oauth2$/, '');
  const found = VENDORS.find((name) => plain(name) === plain(text));
  if (found) return found;
  throw new CliError('usage', `There is no vendor ${text}.`, `It is one of: ${VENDORS.map(plain).join(', ')}`);
}

/** The request that makes such a provider. Throws a `CliError` (usage) for a custom server that is not named. */
export function oauth2Request(wish: Oauth2Wish): CreateOauth2CredentialProviderRequest {
  const { name, vendor, clientId, clientSecret, secret, tenant } = wish;
  const client = {
    clientId,
    ...(secret
      ? { clientSecretSource: 'EXTERNAL' as const, clientSecretConfig: secret }
      : clientSecret !== undefined && { clientSecret }),
  };
  const request = (oauth2ProviderConfigInput: CreateOauth2CredentialProviderRequest['oauth2ProviderConfigInput']) => ({
    name,
    credentialProviderVendor: vendor,
    oauth2ProviderConfigInput,
  });
  switch (vendor) {
    case 'CustomOauth2':
      return request({
        customOauth2ProviderConfig: {
          ...client,
          ...methodOf(wish),
          oauthDiscovery: serverOf(wish),
          onBehalfOfTokenExchangeConfig: onBehalfOfOf(wish),
        },
      });
    case 'GoogleOauth2':
      return request({ googleOauth2ProviderConfig: client });
    case 'GithubOauth2':
      return request({ githubOauth2ProviderConfig: client });
    case 'SlackOauth2':
      return request({ slackOauth2ProviderConfig: client });
    case 'SalesforceOauth2':
      return request({ salesforceOauth2ProviderConfig: client });
    case 'AtlassianOauth2':
      return request({ atlassianOauth2ProviderConfig: client });
    case 'LinkedinOauth2':
      return request({ linkedinOauth2ProviderConfig: client });
    case 'MicrosoftOauth2':
      return request({
        microsoftOauth2ProviderConfig: { ...client, ...(tenant !== undefined && { tenantId: tenant }) },
      });
    default:
      return request({ includedOauth2ProviderConfig: { ...client, ...endpointsOf(wish) } });
  }
}

function methodOf({ clientAuthentication }: Oauth2Wish) {
  return clientAuthentication && { clientAuthenticationMethod: clientAuthentication };
}

function onBehalfOfOf({ onBehalfOf, actorScopes }: Oauth2Wish): OnBehalfOfTokenExchangeConfigType | undefined {
  if (actorScopes && onBehalfOf !== 'TOKEN_EXCHANGE')
    throw new CliError('usage', '--actor-scopes needs --on-behalf-of TOKEN_EXCHANGE.');
  if (onBehalfOf === undefined) return undefined;
  if (onBehalfOf !== 'TOKEN_EXCHANGE') return { grantType: onBehalfOf };
  const actor = actorScopes
    ? { actorTokenContent: 'M2M' as const, actorTokenScopes: actorScopes }
    : { actorTokenContent: 'NONE' as const };
  return { grantType: onBehalfOf, tokenExchangeGrantTypeConfig: actor };
}

function serverOf(wish: Oauth2Wish) {
  const { discoveryUrl } = wish;
  if (discoveryUrl !== undefined) return { discoveryUrl };
  const { issuer, authorizationEndpoint, tokenEndpoint } = endpointsOf(wish);
  if (issuer === undefined || authorizationEndpoint === undefined || tokenEndpoint === undefined)
    throw new CliError(
      'usage',
      'A custom provider needs the address of its server.',
      'Give --discovery-url URL, or all of --issuer, --authorization-endpoint and --token-endpoint.',
    );
  return { authorizationServerMetadata: { issuer, authorizationEndpoint, tokenEndpoint } };
}

function endpointsOf({ issuer, authorizationEndpoint, tokenEndpoint }: Oauth2Wish) {
  return {
    ...(issuer !== undefined && { issuer }),
    ...(authorizationEndpoint !== undefined && { authorizationEndpoint }),
    ...(tokenEndpoint !== undefined && { tokenEndpoint }),
  };
}
