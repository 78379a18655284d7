import type { Logger } from 'pino';
import type { Caller } from '../../../kernel/service.ts';
import type { FreshTokens } from './fresh-tokens.ts';
import type { OauthClients } from './oauth-clients.ts';
import { ProviderError } from './provider-error.ts';
import { changedMeanwhile } from './refreshes.ts';
import type { OpenedToken, StoredToken, StoredTokens } from './stored-tokens.ts';
import type { TokenEndpoint } from './token-endpoint.ts';
import { type TokenRequest, tokenKey } from './token-request.ts';

export interface UserTokensDeps {
  clients: OauthClients;
  endpoint: TokenEndpoint;
  fresh: FreshTokens;
  tokens: StoredTokens;
  log: Logger;
}

/** The provider does not know the grant any more: it was revoked, or an answer that renewed it was lost. Consent must begin again. */
export class ConsentLostError extends Error {
  constructor(cause: ProviderError) {
    super('The user’s consent is no longer valid.', { cause });
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
    const renew = (now: TokenRequest, current: StoredToken | undefined) => this.#renew(now, current, caller);
    return this.#deps.fresh.get(UserTokens.keyOf(request), request, { caller, renew, waiting: { signal } });
  }

  async #renew(request: TokenRequest, current: StoredToken | undefined, caller: Caller) {
    const { tokens, clients, endpoint } = this.#deps;
    const { provider, resources } = request;
    const before = current && (await tokens.open(current, caller));
    if (!current || before?.refreshToken === undefined) return undefined;
    const client = await clients.of(provider, caller);
    // The scopes are those that were granted: none are named.
    const parameters = new URLSearchParams({ refresh_token: before.refreshToken });
    for (const resource of resources) parameters.append('resource', resource);
    // Before it is sent: whoever dies meanwhile leaves word of it.
    if (!(await tokens.intend(current))) throw changedMeanwhile();
    try {
      const given = await endpoint.ask(client, { type: 'refresh_token', parameters, once: true });
      return { ...given, refreshToken: given.refreshToken ?? before.refreshToken };
    } catch (error) {
      if (!(error instanceof ProviderError) || error.kind !== 'refused') throw error;
      if (GONE.has(error.code ?? '')) throw await this.#lost(request, current, error);
      await tokens.callOff(current);
      throw error;
    }
  }

  /** The grant is over. One whose renewal was cut off before may have been lost with the answer, which the operator is told. */
  async #lost({ provider, bearer }: TokenRequest, { key, sealed, renewingSince }: StoredToken, why: ProviderError) {
    const { tokens, log } = this.#deps;
    await tokens.delete(key, sealed);
    const since = renewingSince === undefined ? undefined : new Date(renewingSince);
    const of = { provider: provider.arn, workload: bearer.workload, code: why.code };
    if (since)
      log.warn(
        { ...of, since },
        'a refresh token is no longer valid whose renewal was cut off: the user has to consent again',
      );
    return new ConsentLostError(why);
  }
}

/** As RFC 6749 says it, and as vendors do that say it otherwise. */
const GONE = new Set(['invalid_grant', 'bad_refresh_token', 'invalid_refresh_token', 'token_revoked', 'token_expired']);
