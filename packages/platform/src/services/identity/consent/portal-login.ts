import { createHmac } from 'node:crypto';
import * as oauth from 'oauth4webapi';
import type { JwtAuthenticator } from '../../../kernel/auth/index.ts';
import { ofThePlatform } from '../../../kernel/service.ts';
import type { OauthClients } from '../flows/oauth-clients.ts';
import { ProviderError } from '../flows/provider-error.ts';
import { asProviderError, type TokenEndpoint } from '../flows/token-endpoint.ts';
import type { Oauth2Provider } from '../providers/oauth2-provider.ts';
import { VENDORS } from '../providers/vendors.ts';
import type { ConsentPortal } from './portal.ts';
import type { PortalUser } from './portal-sessions.ts';

export interface PortalLoginDeps {
  clients: OauthClients;
  endpoint: TokenEndpoint;
  jwt: JwtAuthenticator;
}

/** What one sign-in stands on. */
export interface SignIn {
  portal: ConsentPortal;
  provider: Oauth2Provider;
  /** Where the provider sends people back to: the portal's address with `/callback`. */
  redirectUri: string;
  /** The secret of the cookie of the browser that signs in; another one for each try. */
  attempt: string;
}

/**
 * Signing in to portals (OpenID Connect Core 1.0, code flow with PKCE). State, nonce and verifier come of the cookie of the browser that
 * begins, so nobody else's answer fits it (login CSRF). That it fits once is seen to by `PortalSignIns`.
 */
export class PortalLogin {
  readonly #deps: PortalLoginDeps;

  constructor(deps: PortalLoginDeps) {
    this.#deps = deps;
  }

  /** The address of the provider's page, and what the browser comes back with. Rejects with `ProviderError`. */
  async begin(signIn: SignIn): Promise<{ location: string; state: string }> {
    const { portal, provider, redirectUri } = signIn;
    const { clientId = '', vendor } = provider.data;
    const { issuer, authorization_endpoint: address } = await this.#deps.clients.server(provider.data);
    if (address === undefined)
      throw new ProviderError('refused', `${issuer} has no page on which people could sign in.`);
    const { scopes, audience } = portal.idpConfig;
    const url = new URL(address);
    const state = derived(signIn, 'state');
    const parameters = {
      ...{ response_type: 'code', client_id: clientId, redirect_uri: redirectUri },
      scope: [...new Set(['openid', ...scopes])].join(VENDORS[vendor].scopeSeparator),
      ...{ state, nonce: derived(signIn, 'nonce') },
      code_challenge: await oauth.calculatePKCECodeChallenge(derived(signIn, 'verifier')),
      code_challenge_method: 'S256',
      ...(audience !== undefined && { audience }),
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return { location: url.href, state };
  }

  /** Who came back with that answer. Rejects with `ProviderError` for an answer that is not to this try, and what is no sign-in. */
  async finish(signIn: SignIn, parameters: URLSearchParams): Promise<PortalUser> {
    const { portal, provider, redirectUri } = signIn;
    const client = await this.#deps.clients.of(provider, ofThePlatform(portal.accountId));
    const code = codeIn(parameters, client, derived(signIn, 'state'));
    const asked = { code, redirect_uri: redirectUri, code_verifier: derived(signIn, 'verifier') };
    const grant = { type: 'authorization_code', parameters: new URLSearchParams(asked), once: true };
    const { idToken } = await this.#deps.endpoint.ask(client, grant);
    if (idToken === undefined) throw new ProviderError('nonsense', 'The provider says not who signed in.');
    return this.#userOf(idToken, signIn);
  }

  async #userOf(idToken: string, signIn: SignIn): Promise<PortalUser> {
    const { portal, provider } = signIn;
    const { clientId = '', oauthDiscovery, certificateAuthority } = provider.data;
    const { discoveryUrl = '' } = oauthDiscovery;
    const configuration = { discoveryUrl, allowedAudience: [clientId] };
    const realm = { accountId: portal.accountId, configuration, certificateAuthority };
    const { claims, vouchedBy, subject } = await this.#deps.jwt.authenticate(idToken, realm).catch((cause: unknown) => {
      throw new ProviderError('nonsense', 'The provider’s statement of who signed in is not genuine.', { cause });
    });
    const { nonce, azp = clientId } = claims;
    if (nonce !== derived(signIn, 'nonce') || azp !== clientId || subject === '')
      throw new ProviderError('nonsense', 'The provider’s statement of who signed in is for another sign-in.');
    return { issuer: vouchedBy, subject };
  }
}

/** One of the values of a try; from none of them another or the cookie can be told. */
function derived({ attempt, portal }: SignIn, what: 'state' | 'nonce' | 'verifier'): string {
  return createHmac('sha256', attempt).update(`${what} ${portal.arn}`).digest('base64url');
}

function codeIn(
  parameters: URLSearchParams,
  { server, client }: Pick<Awaited<ReturnType<OauthClients['of']>>, 'server' | 'client'>,
  state: string,
): string {
  try {
    const code = oauth.validateAuthResponse(server, client, parameters, state).get('code');
    if (code) return code;
  } catch (error) {
    if (error instanceof oauth.AuthorizationResponseError)
      throw new ProviderError('refused', 'The provider did not sign you in.', { cause: error });
    throw asProviderError(error, server.issuer);
  }
  throw new ProviderError('nonsense', 'The provider sent no code.');
}
