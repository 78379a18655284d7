import { errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import type { Caller } from '../../../kernel/service.ts';
import { VENDORS } from '../providers/vendors.ts';
import type { FreshTokens, Waiting } from './fresh-tokens.ts';
import type { OauthClients } from './oauth-clients.ts';
import { changedMeanwhile } from './refreshes.ts';
import type { StoredToken, StoredTokens } from './stored-tokens.ts';
import type { TokenEndpoint } from './token-endpoint.ts';
import { grantParameters, type TokenRequest, tokenKey } from './token-request.ts';

export interface MachineTokensDeps {
  clients: OauthClients;
  endpoint: TokenEndpoint;
  fresh: FreshTokens;
  tokens: Pick<StoredTokens, 'countOwn'>;
  clock: Pick<Clock, 'now'>;
}

/** Of one agent, each for other scopes, audiences, resources or parameters. */
const MOST_TOKENS = 1000;
/** How long a token counts whose provider says nothing of its end. */
const UNTOLD_MS = 300_000;

/** Tokens of agents themselves (client credentials, RFC 6749 section 4.4): one round trip, then from memory until it is nearly over. */
export class MachineTokens {
  readonly #deps: MachineTokensDeps;

  constructor(deps: MachineTokensDeps) {
    this.#deps = deps;
  }

  /** Shared by all users of the agent. Rejects with `ProviderError`, and what reading the client's secret rejects with. */
  async get(request: TokenRequest, caller: Caller, waiting: Waiting): Promise<string> {
    const { clients, endpoint, fresh, tokens, clock } = this.#deps;
    const own = { ...request, bearer: { ...request.bearer, user: undefined } };
    const key = tokenKey(own, ['M2M', Object.entries(request.customParameters).sort()]);
    const renew = async ({ provider }: TokenRequest, current: StoredToken | undefined) => {
      if (!current && (await tokens.countOwn(own.bearer)) >= MOST_TOKENS)
        throw errors.throttling(
          `The agent ${own.bearer.workload} has ${MOST_TOKENS} tokens of its own that still count.`,
          {
            remedy:
              'Ask for the same scopes, audiences, resources and parameters again: that gives the token that there is.',
          },
        );
      const parameters = grantParameters(own, VENDORS[provider.data.vendor].scopeSeparator);
      const client = await clients.of(provider, caller);
      const given = await endpoint.ask(client, { type: 'client_credentials', parameters });
      return { ...given, refreshToken: undefined, expiresAt: given.expiresAt ?? clock.now() + UNTOLD_MS };
    };
    const token = await fresh.get(key, own, { caller, renew, waiting });
    // The vault was reset between the writing and the opening.
    if (!token) throw changedMeanwhile();
    return token.accessToken;
  }
}
