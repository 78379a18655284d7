import type { Caller } from '../../../kernel/service.ts';
import type { FreshTokens } from './fresh-tokens.ts';
import type { OauthClients } from './oauth-clients.ts';
import { ProviderError } from './provider-error.ts';
import type { OpenedToken, StoredTokens } from './stored-tokens.ts';
import type { TokenEndpoint } from './token-endpoint.ts';
import { type TokenRequest, tokenKey } from './token-request.ts';

export interface UserTokensDeps {
  clients: OauthClients;
  endpoint: TokenEndpoint;
  fresh: FreshTokens;
  tokens: StoredTokens;
}

/** The provider does not know the grant any more: it was revoked, or an answer that renewed it was lost. Consent must begin again. */
export class ConsentLostError extends Error {
  constructor(cause: ProviderError) {
    super('The user’s consent counts no more.', { cause });
    this.name = 'ConsentLostError';
  }
}

/** Tokens that users have consented to, renewed silently by their refresh tokens. */
export class UserTokens {
  readonly #deps: UserTokensDeps;

  constructor(deps: UserTokensDeps) {
    this.#deps = deps;
  }

  /** The same whatever page the user consented on. */
  static keyOf(request: TokenRequest): string {
    return tokenKey(request, ['USER_FEDERATION']);
  }

  /**
   * Undefined when the user has not consented, or his consent is over and cannot be renewed. Rejects with `ConsentLostError`, `ProviderError`,
   * and AccessDeniedException where the caller may not use the vault's key or the client's secret.
   */
  async get(request: TokenRequest, caller: Caller, signal: AbortSignal): Promise<OpenedToken | undefined> {
    const { fresh, tokens } = this.#deps;
    const key = UserTokens.keyOf(request);
    const token = await fresh.get(key, request, { caller, signal, renew: () => this.#renew(key, request, caller) });
    return token && tokens.open(token, caller);
  }

  async #renew(key: string, { provider, resources }: TokenRequest, caller: Caller) {
    const { tokens, clients, endpoint } = this.#deps;
    const current = await tokens.read(key);
    const before = current && (await tokens.open(current, caller));
    if (!before?.refreshToken) return undefined;
    const client = await clients.of(provider, caller);
    // The scopes are those that were granted: none are named.
    const parameters = new URLSearchParams({ refresh_token: before.refreshToken });
    for (const resource of resources) parameters.append('resource', resource);
    try {
      const given = await endpoint.ask(client, { type: 'refresh_token', parameters, once: true });
      return { ...given, refreshToken: given.refreshToken ?? before.refreshToken };
    } catch (error) {
      if (!(error instanceof ProviderError) || !GONE.has(error.code ?? '')) throw error;
      await tokens.delete(key, current?.sealed);
      throw new ConsentLostError(error);
    }
  }
}

/** As RFC 6749 says it, and as vendors do that say it otherwise. */
const GONE = new Set(['invalid_grant', 'bad_refresh_token', 'invalid_refresh_token', 'token_revoked', 'token_expired']);
