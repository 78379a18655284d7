import { hash } from 'node:crypto';
import { errors } from '@agentplatform/contract';
import { decodeJwt } from 'jose';
import type { JwtAuthenticator } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { Lru } from '../../../kernel/lru.ts';
import type { Caller } from '../../../kernel/service.ts';
import { SingleFlight } from '../../../kernel/single-flight.ts';
import type { Oauth2Provider, Oauth2Settings } from '../providers/oauth2-provider.ts';
import { VENDORS } from '../providers/vendors.ts';
import type { WorkloadBearer } from '../workloads/workload-tokens.ts';
import type { Waiting } from './fresh-tokens.ts';
import type { OauthClients } from './oauth-clients.ts';
import type { GivenTokens, Grant, TokenEndpoint } from './token-endpoint.ts';
import { asSet, grantParameters, type TokenRequest, tokenKey } from './token-request.ts';

export interface ExchangedTokensDeps {
  clients: OauthClients;
  endpoint: TokenEndpoint;
  jwt: JwtAuthenticator;
  /** The access token of the agent itself, as an actor. */
  actorToken(request: TokenRequest, caller: Caller, waiting: Waiting): Promise<string>;
  clock: Pick<Clock, 'now'>;
}

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const TYPE_JWT = 'urn:ietf:params:oauth:token-type:jwt';
const TYPE_ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const AT_HAND = 5_000;
const AHEAD_MS = 30_000;
/** How long a token counts whose provider says nothing of its end. */
const UNTOLD_MS = 60_000;

/**
 * Tokens that agents get for the user whose own token came with the request (RFC 8693, RFC 7523). Kept in memory for that very token alone:
 * another one of the same user may allow less.
 */
export class ExchangedTokens {
  readonly #deps: ExchangedTokensDeps;
  readonly #held = new Lru<string, GivenTokens>(AT_HAND);
  readonly #flights = new SingleFlight<GivenTokens>();

  constructor(deps: ExchangedTokensDeps) {
    this.#deps = deps;
  }

  /**
   * Rejects with ValidationException where the agent has no token of the user or the provider exchanges none, UnauthorizedException for one that
   * counts no more, and `ProviderError`.
   */
  async get(request: TokenRequest, caller: Caller, signal: AbortSignal): Promise<string> {
    const { clock } = this.#deps;
    const { provider, bearer } = request;
    // Before anything of the user is looked at.
    exchangeOf(provider);
    const subject = await this.#subject(bearer);
    const digest = hash('sha256', subject, 'base64');
    const beside = ['ON_BEHALF_OF', digest, Object.entries(request.customParameters).sort(), provider.updatedAt];
    const key = tokenKey(request, beside);
    const held = this.#held.get(key);
    if (held && (held.expiresAt ?? 0) - AHEAD_MS > clock.now()) return held.accessToken;
    const exchange = async (): Promise<GivenTokens> => {
      const given = await this.exchange(request, subject, caller, signal);
      const kept = { ...given, expiresAt: given.expiresAt ?? clock.now() + UNTOLD_MS };
      this.#held.set(key, kept);
      return kept;
    };
    return (await this.#flights.run(key, exchange, signal)).accessToken;
  }

  /** One round trip, with that token as it is. Rejects as `get` does, but for what is wrong with the token. */
  async exchange(request: TokenRequest, subject: string, caller: Caller, signal: AbortSignal): Promise<GivenTokens> {
    const { clients, endpoint } = this.#deps;
    const { provider } = request;
    const config = exchangeOf(provider);
    const unknown = config.onBehalfOfAuthenticationConfig?.clientAuthenticationMethod === 'NO_CLIENT';
    const client = await clients.of(provider, caller, unknown);
    return endpoint.ask(client, await this.#grant(request, { subject, config }, caller, signal));
  }

  /** The user's own token, looked at once more: what was true when it came may be so no longer. */
  async #subject({ accountId, user, subjectToken }: WorkloadBearer): Promise<string> {
    if (!subjectToken || user?.kind !== 'token')
      throw errors.validation(
        'The workload access token was made without a token of the user, so there is none to exchange.',
        {
          remedy: 'Call the agent with a bearer token, or use GetWorkloadAccessTokenForJWT.',
        },
      );
    const { token, discoveryUrl } = subjectToken;
    if (token === undefined)
      throw errors.validation(
        'The user’s own token does not fit into the workload access token, so it cannot be exchanged: it has more than 4 KB, or too much else travels beside it.',
        {
          remedy: 'Configure its issuer to put fewer claims into it.',
        },
      );
    if (discoveryUrl !== undefined) {
      const principal = await this.#deps.jwt.authenticate(token, { accountId, configuration: { discoveryUrl } });
      if (principal.subject === user.subject) return token;
    } else {
      // An authority of the runtime's own vouches for its issuer. The signature was true when the platform sealed the token.
      const { exp = 0, sub } = decodeJwt(token);
      if (exp * 1000 > this.#deps.clock.now() && sub === user.subject) return token;
    }
    throw errors.unauthorized('The user’s own token is no longer valid.');
  }

  async #grant(
    request: TokenRequest,
    { subject, config }: { subject: string; config: NonNullable<Oauth2Settings['onBehalfOf']> },
    caller: Caller,
    signal: AbortSignal,
  ): Promise<Grant> {
    const { vendor } = request.provider.data;
    const { scopeSeparator, onBehalfOfParameters = {} } = VENDORS[vendor];
    const parameters = grantParameters(request, scopeSeparator);
    for (const [name, value] of Object.entries(onBehalfOfParameters)) parameters.set(name, value);
    if (config.grantType === 'JWT_AUTHORIZATION_GRANT') {
      parameters.set('assertion', subject);
      return { type: JWT_BEARER, parameters };
    }
    parameters.set('subject_token', subject);
    // A vendor or caller may set another type, because some servers want the use of the token here (access_token) and not its format (jwt).
    if (!parameters.has('subject_token_type')) parameters.set('subject_token_type', TYPE_JWT);
    const { actorTokenContent, actorTokenScopes } = config.tokenExchangeGrantTypeConfig ?? {};
    if (actorTokenContent === 'M2M') {
      const actor = { ...request, scopes: asSet(actorTokenScopes), resources: [], audiences: [], customParameters: {} };
      parameters.set('actor_token', await this.#deps.actorToken(actor, caller, { signal }));
      parameters.set('actor_token_type', TYPE_ACCESS_TOKEN);
    }
    return { type: TOKEN_EXCHANGE, parameters };
  }
}

/** How that provider exchanges tokens. Throws ValidationException where it exchanges none. */
function exchangeOf({ name, data }: Oauth2Provider): NonNullable<Oauth2Settings['onBehalfOf']> {
  const config = data.onBehalfOf ?? VENDORS[data.vendor].onBehalfOf;
  if (config) return config;
  throw errors.validation(`The provider ${name} exchanges no tokens of users.`, {
    remedy: 'Make it with onBehalfOfTokenExchangeConfig.',
  });
}
