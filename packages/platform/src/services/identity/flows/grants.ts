import type { Logger } from 'pino';
import { ofThePlatform } from '../../../kernel/service.ts';
import type { CredentialProviders } from '../providers/credential-providers.ts';
import type { Oauth2Provider, Oauth2Settings } from '../providers/oauth2-provider.ts';
import type { OauthClients } from './oauth-clients.ts';
import type { Refreshes } from './refreshes.ts';
import type { RevocationEndpoint } from './revocation-endpoint.ts';
import type { Grant, OpenedToken, StoredTokens } from './stored-tokens.ts';

export interface GrantsDeps {
  tokens: StoredTokens;
  refreshes: Refreshes;
  clients: OauthClients;
  revocation: RevocationEndpoint;
  providers: CredentialProviders<Oauth2Settings>;
  log: Logger;
}

/** What became of a grant at its provider: it was told, has no endpoint to be told at, or could not be told. Here the grant is over in any case. */
export type AtProvider = 'revoked' | 'not-offered' | 'failed';

/** Which grants are meant. */
export interface GrantFilter {
  /** Name of an OAuth2 provider. */
  provider?: string;
  workload?: string;
  /** One for an id, two for issuer and subject. */
  userNames?: readonly string[];
}

/** Of one list at most. */
export const MOST_GRANTS = 500;

/** A list of grants, and what to go on after where there are more. */
export interface GrantList {
  grants: Grant[];
  next: Pick<Grant, 'key' | 'grantedAt'> | undefined;
}

/** Before a grant's key, which may begin with a hyphen as options of command lines do. */
const ID_PREFIX = 'grant-';

/** What a grant is called outside. */
export function grantId(key: string): string {
  return `${ID_PREFIX}${key}`;
}

/** What users have granted agents, and how that ends. */
export class Grants {
  readonly #deps: GrantsDeps;

  constructor(deps: GrantsDeps) {
    this.#deps = deps;
  }

  /** Newest first, those after `after`, at most `limit`. */
  async list(
    accountId: string,
    { provider, ...filter }: GrantFilter,
    { limit = MOST_GRANTS, after }: { limit?: number; after?: GrantList['next'] } = {},
  ): Promise<GrantList> {
    const { tokens, providers } = this.#deps;
    const providerArn = provider === undefined ? {} : { providerArn: providers.arnOf(accountId, provider) };
    const found = await tokens.grants(accountId, { ...filter, ...providerArn, after, limit: limit + 1 });
    const grants = found.slice(0, limit);
    return { grants, next: found.length > limit ? grants.at(-1) : undefined };
  }

  /** The grant of that id, as far as the filter lets it be seen. */
  async find(accountId: string, id: string, filter: Pick<GrantFilter, 'userNames'> = {}): Promise<Grant | undefined> {
    if (!id.startsWith(ID_PREFIX)) return undefined;
    const key = id.slice(ID_PREFIX.length);
    const [found] = await this.#deps.tokens.grants(accountId, { ...filter, key, limit: 1 });
    return found;
  }

  /** The provider of a grant; undefined when it is gone. */
  async providerOf(accountId: string, { providerArn, providerId }: Grant): Promise<Oauth2Provider | undefined> {
    const name = providerArn.slice(providerArn.lastIndexOf('/') + 1);
    const provider = await this.#deps.providers.find(accountId, name);
    return provider?.data.id === providerId ? provider : undefined;
  }

  /** Ends it here, where no agent gets its token any more, and then at its provider. Who may is asked before. */
  async revoke(accountId: string, grant: Grant, signal: AbortSignal): Promise<AtProvider> {
    const { refreshes, log } = this.#deps;
    // A renewal on its way would bring it back.
    const token = await refreshes.exclusively({ ...grant, accountId }, () => this.#end(accountId, grant.key), signal);
    try {
      return token === undefined ? 'failed' : await this.#tell(accountId, grant, token);
    } catch (err) {
      log.warn({ err, provider: grant.providerArn }, 'a provider could not be told that a grant was revoked');
      return 'failed';
    }
  }

  /** Deletes the token and resolves with it; undefined if it cannot be opened. */
  async #end(accountId: string, key: string): Promise<OpenedToken | undefined> {
    const { tokens, log } = this.#deps;
    const stored = await tokens.read(key);
    if (!stored) return undefined;
    await tokens.delete(key);
    return tokens.open(stored, ofThePlatform(accountId)).catch((err: unknown) => {
      log.warn({ err }, 'a token that was revoked cannot be opened');
      return undefined;
    });
  }

  async #tell(accountId: string, grant: Grant, { refreshToken, accessToken }: OpenedToken): Promise<AtProvider> {
    const { clients, revocation } = this.#deps;
    const provider = await this.providerOf(accountId, grant);
    if (!provider) return 'failed';
    const client = await clients.of(provider, ofThePlatform(accountId));
    if (client.server.revocation_endpoint === undefined) return 'not-offered';
    // With it goes what came of it; where a server does not see it so, the other is told as well.
    if (refreshToken !== undefined) await revocation.revoke(client, refreshToken, 'refresh_token');
    await revocation.revoke(client, accessToken, 'access_token');
    return 'revoked';
  }
}
