import type { control } from '@agentplatform/contract';

type VendorName = control.CredentialProviderVendorType;

/** Addresses of an authorization server that publishes no document about itself. */
export interface Endpoints {
  issuer: string;
  authorizationEndpoint: string;
  tokenEndpoint: string;
}

/** What is particular to one vendor of authorization servers; facts from its own documentation and the developer guide. */
export interface Vendor {
  /** As people call it. */
  title: string;
  /** The member of the wire's `oauth2ProviderConfigInput` that its settings come in. */
  member: keyof control.Oauth2ProviderConfigInput;
  /** Where it is: its discovery document or its addresses; `tenant`, which each customer names by himself. `{tenant}` stands for a tenant's id. */
  server: { discoveryUrl: string } | Endpoints | 'tenant';
  /** Where it takes tokens back (RFC 7009), where no discovery document says so. */
  revocationEndpoint?: string;
  /** What stands between scopes. */
  scopeSeparator: ' ' | ',';
  /** Whether it takes PKCE (RFC 7636). Those that do not know it are not sent it: some refuse what they do not know. */
  pkce: boolean;
  clientAuthentication: 'CLIENT_SECRET_BASIC' | 'CLIENT_SECRET_POST';
  /** What the address of its authorization page has besides; most ask for a refresh token so. */
  authorizationParameters?: Readonly<Record<string, string>>;
  /** How it exchanges a user's token, where it does without being told how. */
  onBehalfOf?: control.OnBehalfOfTokenExchangeConfigType;
  /** What such an exchange has besides. */
  onBehalfOfParameters?: Readonly<Record<string, string>>;
}

const usual = { scopeSeparator: ' ', pkce: true, clientAuthentication: 'CLIENT_SECRET_POST' } as const;
const withoutPkce = { ...usual, pkce: false } as const;
const basic = { ...usual, clientAuthentication: 'CLIENT_SECRET_BASIC' } as const;
const included = { member: 'includedOauth2ProviderConfig' } as const;
const ofTenant = { ...usual, ...included, server: 'tenant' } as const;

/** Every vendor that the wire knows. */
export const VENDORS: Readonly<Record<VendorName, Vendor>> = {
  CustomOauth2: { ...basic, title: 'Custom', member: 'customOauth2ProviderConfig', server: 'tenant' },
  GoogleOauth2: {
    ...usual,
    title: 'Google',
    member: 'googleOauth2ProviderConfig',
    server: { discoveryUrl: 'https://accounts.google.com/.well-known/openid-configuration' },
    // A refresh token comes with the first consent alone, unless each is asked for anew.
    authorizationParameters: { access_type: 'offline', prompt: 'consent' },
  },
  GithubOauth2: {
    ...usual,
    title: 'GitHub',
    member: 'githubOauth2ProviderConfig',
    server: {
      issuer: 'https://github.com/login/oauth',
      authorizationEndpoint: 'https://github.com/login/oauth/authorize',
      tokenEndpoint: 'https://github.com/login/oauth/access_token',
    },
  },
  SlackOauth2: {
    ...usual,
    title: 'Slack',
    member: 'slackOauth2ProviderConfig',
    // Those of users' tokens; the others give a bot's, which is everybody's.
    server: {
      issuer: 'https://slack.com',
      authorizationEndpoint: 'https://slack.com/oauth/v2_user/authorize',
      tokenEndpoint: 'https://slack.com/api/oauth.v2.user.access',
    },
    scopeSeparator: ',',
  },
  SalesforceOauth2: {
    ...usual,
    title: 'Salesforce',
    member: 'salesforceOauth2ProviderConfig',
    server: { discoveryUrl: 'https://login.salesforce.com/.well-known/openid-configuration' },
  },
  MicrosoftOauth2: {
    ...usual,
    title: 'Microsoft',
    member: 'microsoftOauth2ProviderConfig',
    server: { discoveryUrl: 'https://login.microsoftonline.com/{tenant}/v2.0/.well-known/openid-configuration' },
    onBehalfOf: { grantType: 'JWT_AUTHORIZATION_GRANT' },
    onBehalfOfParameters: { requested_token_use: 'on_behalf_of' },
  },
  AtlassianOauth2: {
    ...withoutPkce,
    title: 'Atlassian',
    member: 'atlassianOauth2ProviderConfig',
    server: {
      issuer: 'https://auth.atlassian.com',
      authorizationEndpoint: 'https://auth.atlassian.com/authorize',
      tokenEndpoint: 'https://auth.atlassian.com/oauth/token',
    },
    authorizationParameters: { audience: 'api.atlassian.com', prompt: 'consent' },
  },
  LinkedinOauth2: {
    ...withoutPkce,
    title: 'LinkedIn',
    member: 'linkedinOauth2ProviderConfig',
    server: {
      issuer: 'https://www.linkedin.com/oauth',
      authorizationEndpoint: 'https://www.linkedin.com/oauth/v2/authorization',
      tokenEndpoint: 'https://www.linkedin.com/oauth/v2/accessToken',
    },
    revocationEndpoint: 'https://www.linkedin.com/oauth/v2/revoke',
  },
  XOauth2: {
    ...basic,
    ...included,
    title: 'X',
    server: {
      issuer: 'https://x.com',
      authorizationEndpoint: 'https://x.com/i/oauth2/authorize',
      tokenEndpoint: 'https://api.x.com/2/oauth2/token',
    },
    revocationEndpoint: 'https://api.x.com/2/oauth2/revoke',
  },
  OktaOauth2: { ...ofTenant, title: 'Okta' },
  OneLoginOauth2: { ...ofTenant, title: 'OneLogin' },
  PingOneOauth2: { ...ofTenant, title: 'PingOne' },
  FacebookOauth2: {
    ...usual,
    ...included,
    title: 'Facebook',
    server: {
      issuer: 'https://www.facebook.com',
      authorizationEndpoint: 'https://www.facebook.com/dialog/oauth',
      tokenEndpoint: 'https://graph.facebook.com/oauth/access_token',
    },
    scopeSeparator: ',',
  },
  YandexOauth2: {
    ...usual,
    ...included,
    title: 'Yandex',
    server: {
      issuer: 'https://oauth.yandex.com',
      authorizationEndpoint: 'https://oauth.yandex.com/authorize',
      tokenEndpoint: 'https://oauth.yandex.com/token',
    },
  },
  RedditOauth2: {
    ...basic,
    ...included,
    title: 'Reddit',
    server: {
      issuer: 'https://www.reddit.com',
      authorizationEndpoint: 'https://www.reddit.com/api/v1/authorize',
      tokenEndpoint: 'https://www.reddit.com/api/v1/access_token',
    },
    revocationEndpoint: 'https://www.reddit.com/api/v1/revoke_token',
    pkce: false,
    authorizationParameters: { duration: 'permanent' },
  },
  ZoomOauth2: {
    ...basic,
    ...included,
    title: 'Zoom',
    server: {
      issuer: 'https://zoom.us',
      authorizationEndpoint: 'https://zoom.us/oauth/authorize',
      tokenEndpoint: 'https://zoom.us/oauth/token',
    },
    revocationEndpoint: 'https://zoom.us/oauth/revoke',
  },
  TwitchOauth2: {
    ...withoutPkce,
    ...included,
    title: 'Twitch',
    server: {
      issuer: 'https://id.twitch.tv/oauth2',
      authorizationEndpoint: 'https://id.twitch.tv/oauth2/authorize',
      tokenEndpoint: 'https://id.twitch.tv/oauth2/token',
    },
    revocationEndpoint: 'https://id.twitch.tv/oauth2/revoke',
  },
  SpotifyOauth2: {
    ...basic,
    ...included,
    title: 'Spotify',
    server: {
      issuer: 'https://accounts.spotify.com',
      authorizationEndpoint: 'https://accounts.spotify.com/authorize',
      tokenEndpoint: 'https://accounts.spotify.com/api/token',
    },
  },
  DropboxOauth2: {
    ...usual,
    ...included,
    title: 'Dropbox',
    server: {
      issuer: 'https://www.dropbox.com',
      authorizationEndpoint: 'https://www.dropbox.com/oauth2/authorize',
      tokenEndpoint: 'https://api.dropboxapi.com/oauth2/token',
    },
    authorizationParameters: { token_access_type: 'offline' },
  },
  NotionOauth2: {
    ...basic,
    ...included,
    title: 'Notion',
    server: {
      issuer: 'https://api.notion.com',
      authorizationEndpoint: 'https://api.notion.com/v1/oauth/authorize',
      tokenEndpoint: 'https://api.notion.com/v1/oauth/token',
    },
    pkce: false,
    authorizationParameters: { owner: 'user' },
  },
  HubspotOauth2: {
    ...withoutPkce,
    ...included,
    title: 'HubSpot',
    server: {
      issuer: 'https://app.hubspot.com',
      authorizationEndpoint: 'https://app.hubspot.com/oauth/authorize',
      tokenEndpoint: 'https://api.hubapi.com/oauth/v1/token',
    },
  },
  CyberArkOauth2: { ...ofTenant, title: 'CyberArk' },
  FusionAuthOauth2: { ...ofTenant, title: 'FusionAuth' },
  Auth0Oauth2: { ...ofTenant, title: 'Auth0' },
  CognitoOauth2: { ...ofTenant, title: 'Amazon Cognito' },
};
