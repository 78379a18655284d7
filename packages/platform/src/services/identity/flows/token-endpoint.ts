import { ServiceError } from '@agentplatform/contract';
import * as oauth from 'oauth4webapi';
import { type Clock, sleep } from '../../../kernel/clock.ts';
import { asOutboundError, type Outbound } from '../../../kernel/outbound/index.ts';
import type { Secret } from '../../../kernel/secrets/index.ts';
import { ProviderError } from './provider-error.ts';

export interface TokenEndpointDeps {
  /** The guard: providers name further addresses. */
  outbound: Pick<Outbound, 'fetch'>;
  clock: Clock;
  /** From 0 up to 1, for the pauses between tries. */
  random(): number;
}

/** A client at its authorization server, as `oauth4webapi` asks there. */
export interface OauthClient {
  server: oauth.AuthorizationServer;
  client: oauth.Client;
  authentication: oauth.ClientAuth;
  /** The secret that the client authenticates with. It is removed from all messages, even if the provider repeats it. */
  secret: Secret | undefined;
  /** PEM of the authority that vouches for the server, beside the usual ones. */
  certificateAuthority: string | undefined;
}

/** What a token endpoint gave. */
export interface GivenTokens {
  accessToken: string;
  refreshToken: string | undefined;
  /** Milliseconds since the epoch; undefined when it was not said. */
  expiresAt: number | undefined;
  /** The scopes of the token, as the server names them. If it names none, the requested ones. */
  scope?: string | undefined;
  /** What it says of who signed in (OpenID Connect), not looked at yet. */
  idToken?: string | undefined;
}

/**
 * One grant at a token endpoint. `once`: what is sent counts once (a code, a refresh token), so it is sent again only where it surely did not
 * arrive.
 */
export interface Grant {
  type: string;
  parameters: URLSearchParams;
  once?: boolean;
}

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 256 * 1024;
const TRIES = 3;
const FIRST_PAUSE_MS = 200;
/** The longest token. No header can hold a longer one. */
const MAX_TOKEN_CHARS = 131_072;

/** Token endpoints of providers (RFC 6749), asked over the guarded way out. */
export class TokenEndpoint {
  readonly #deps: TokenEndpointDeps;

  constructor(deps: TokenEndpointDeps) {
    this.#deps = deps;
  }

  /** Asks for tokens. Rejects with `ProviderError`, or with the signal's reason. */
  async ask(at: OauthClient, grant: Grant, signal?: AbortSignal): Promise<GivenTokens> {
    for (let tried = 1; ; tried += 1) {
      try {
        return await this.#try(at, grant, signal);
      } catch (error) {
        signal?.throwIfAborted();
        // Of the key that signs: not the provider's.
        if (error instanceof ServiceError) throw error;
        const hidden = [...grant.parameters.values(), at.secret?.reveal() ?? ''];
        const failure = asProviderError(error, at.server.issuer, hidden);
        if (tried === TRIES || !mayRepeat(failure, grant)) throw failure;
        // Full jitter: those who failed together do not come back together.
        await sleep(this.#deps.clock, this.#deps.random() * FIRST_PAUSE_MS * 2 ** tried, signal);
      }
    }
  }

  async #try(at: OauthClient, grant: Grant, signal?: AbortSignal): Promise<GivenTokens> {
    const { server, client, authentication } = at;
    let idToken: string | undefined;
    const asked = await oauth.genericTokenEndpointRequest(
      server,
      client,
      authentication,
      grant.type,
      grant.parameters,
      {
        [oauth.customFetch]: async (url, options) => {
          const answer = await this.#send(url, options, at.certificateAuthority);
          ({ idToken } = answer);
          return answer.response;
        },
        // Which addresses are called is the guard's to say, and the operator's.
        [oauth.allowInsecureRequests]: true,
        ...(signal && { signal }),
      },
    );
    const answer = await oauth.processGenericTokenEndpointResponse(server, client, asked);
    const { access_token: accessToken, refresh_token: refreshToken, expires_in: seconds, scope } = answer;
    for (const token of [accessToken, refreshToken ?? 'none'])
      if (token === '' || token.length > MAX_TOKEN_CHARS || !/^[\x20-\x7e]+$/.test(token))
        throw new ProviderError('nonsense', `${server.issuer} gave something that is not a token.`);
    const expiresAt = seconds === undefined ? undefined : this.#deps.clock.now() + seconds * 1000;
    return { accessToken, refreshToken, expiresAt, scope, idToken };
  }

  async #send(
    url: string,
    { method, headers, body, signal }: oauth.CustomFetchOptions<string, unknown>,
    ca: string | undefined,
  ): Promise<OauthAnswer> {
    const answer = await this.#deps.outbound.fetch(url, {
      method,
      headers: { ...headers, 'user-agent': 'agentplatform' },
      body: String(body),
      ...(signal && { signal }),
      timeoutMs: TIMEOUT_MS,
      maxBytes: MAX_BYTES,
      // A secret is not carried on to where an answer points.
      redirects: 0,
      ca,
    });
    const text = await answer.text();
    if (answer.status >= 500 || answer.status === 429)
      throw new ProviderError('unreachable', `${new URL(url).host} answers ${answer.status}.`);
    return inOauthsWords(answer.status, text);
  }
}

/** An answer in the words of OAuth, and the statement of OpenID Connect beside it. */
interface OauthAnswer {
  response: Response;
  idToken: string | undefined;
}

/** What a client of OAuth expects, of what vendors send: errors with status 200, lists of scopes, no type of a token or one of their own. */
function inOauthsWords(status: number, text: string): OauthAnswer {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new ProviderError('nonsense', `The provider's answer (status ${status}) is not JSON.`);
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new ProviderError('nonsense', `The provider's answer (status ${status}) is not a JSON object.`);
  // The id token is for whoever asks for one, who looks at it himself.
  const { id_token: idToken, ...members }: Record<string, unknown> = { ...body };
  const failed = typeof members.error === 'string';
  if (!failed)
    Object.assign(members, { token_type: typeOf(members.token_type), ...scopeOf(members.scope), ...lifeOf(members) });
  const refused = failed && status < 400;
  const headers = { 'content-type': 'application/json' };
  const response = new Response(JSON.stringify(members), { status: refused ? 400 : status, headers });
  return { response, idToken: typeof idToken === 'string' ? idToken : undefined };
}

/** Slack names whose it is. */
function typeOf(type: unknown): unknown {
  return type === undefined || type === 'user' || type === 'bot' ? 'bearer' : type;
}

function scopeOf(scope: unknown): { scope?: string } {
  return Array.isArray(scope) ? { scope: scope.join(' ') } : {};
}

/** Some write the seconds as a text, and 0 for what does not end. */
function lifeOf({ expires_in: seconds }: Record<string, unknown>): { expires_in?: number | undefined } {
  if (seconds === undefined) return {};
  const life = typeof seconds === 'string' && /^\d{1,10}$/.test(seconds) ? Number(seconds) : seconds;
  if (life === null || life === 0) return { expires_in: undefined };
  if (typeof life !== 'number' || !(life > 0))
    throw new ProviderError('nonsense', 'The provider says no sensible time of a token.');
  // At most ten years, because later dates may be invalid.
  return { expires_in: Math.min(life, 315_360_000) };
}

function mayRepeat({ kind, cause }: ProviderError, { once }: Grant): boolean {
  if (kind !== 'unreachable') return false;
  if (!once) return true;
  const code = asOutboundError(cause)?.code;
  return code === 'NAME_NOT_RESOLVED' || code === 'OVERLOADED' || isRefusedConnection(cause);
}

/** Nothing was sent. */
function isRefusedConnection(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if ('code' in cause && cause.code === 'ECONNREFUSED') return true;
  return false;
}

/** Error codes of OAuth and of vendors. */
const CODE = /^[a-z_]{1,64}$/;
/** What a provider repeats of what it was sent may be encoded in any way. */
const LIKE_A_TOKEN = /[\w.~+/=%-]{20}/;

/** Why, in words that are the platform's own or printable ones of the provider. */
export function asProviderError(error: unknown, issuer: string, hidden: readonly string[] = []): ProviderError {
  if (error instanceof ProviderError) return error;
  const cause = { cause: error };
  const outbound = asOutboundError(error);
  if (outbound) {
    const lasting = ['ADDRESS_REFUSED', 'BAD_URL', 'SCHEME_REFUSED', 'USERINFO_REFUSED', 'PORT_REFUSED', 'TOO_LARGE'];
    const kind = lasting.includes(outbound.code) || outbound.code === 'BAD_ENCODING' ? 'nonsense' : 'unreachable';
    return new ProviderError(kind, `${issuer} gave no token: ${outbound.message}.`, cause);
  }
  if (error instanceof oauth.ResponseBodyError) {
    const description = printable(without(hidden, error.error_description ?? ''));
    const said = description === '' || LIKE_A_TOKEN.test(description) ? '' : ` (${description})`;
    const code = CODE.test(error.error) ? error.error : 'an error';
    // Without the cause, which has the answer as it was: logs would have it, too.
    return new ProviderError('refused', `${issuer} gave no token: ${code}${said}.`, { code });
  }
  const why = error instanceof Error ? printable(error.message) : 'unknown';
  return new ProviderError('nonsense', `What ${issuer} answered is not an answer of OAuth: ${why}.`);
}

/** The error code of OAuth in a message of `asProviderError`, where it was kept as a text. */
export function refusalCodeOf(message: string): string | undefined {
  return / gave no token: ([a-z_]{1,64})(?: \(.*\))?\.$/.exec(message)?.[1];
}

/** A text without these parts of it, where they are long enough to be secrets. */
function without(hidden: readonly string[], text: string): string {
  return hidden.filter(({ length }) => length >= 8).reduce((left, secret) => left.replaceAll(secret, '…'), text);
}

function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, 300);
}
