import { errors } from '@agentplatform/contract';
import { type RouteSet, readMembers, SIGNED } from '../../../kernel/http/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import type { CredentialProviders } from '../providers/credential-providers.ts';
import type { Oauth2Provider, Oauth2Settings } from '../providers/oauth2-provider.ts';
import type { CheckedStep } from './provider-check.ts';
import { asSet } from './token-request.ts';

export interface ProviderCheckRoutesDeps {
  providers: Pick<CredentialProviders<Oauth2Settings>, 'get' | 'arnOf'>;
  check(
    provider: Oauth2Provider,
    scopes: readonly string[],
    on: { caller: Caller; signal: AbortSignal },
  ): Promise<CheckedStep[]>;
}

/** Of the wire's `scopes`. */
const MOST_SCOPES = 100;
const MOST_CHARS = 128;
/** Longer than all tries at a provider. */
const PATIENCE_MS = 60_000;

/** `POST /_platform/identity/oauth2-providers/{name}/test`: walks the provider's flow and says which step fails. */
export function providerCheckRoutes({ providers, check }: ProviderCheckRoutesDeps): RouteSet {
  return {
    name: 'provider-check',
    routes: [
      {
        method: 'POST',
        url: '/_platform/identity/oauth2-providers/:name/test',
        credentials: SIGNED,
        ask(call) {
          const { accountId, params, body } = call;
          const { name = '' } = params;
          // An external secret is read as whoever asks.
          const caller: Caller = { accountId, require: async (action, resource) => call.require(action, resource) };
          return {
            rights: { action: 'agentplatform:TestCredentialProvider', resource: providers.arnOf(accountId, name) },
            async answer() {
              const scopes = readScopes(body);
              const provider = await providers.get(accountId, name);
              const signal = AbortSignal.timeout(PATIENCE_MS);
              return {
                name,
                steps: await check(provider, scopes, { caller, signal }),
              };
            },
          };
        },
      },
    ],
  };
}

function readScopes(body: Buffer): string[] {
  const { scopes = [] } = readMembers(body, '{"scopes": ["read"]}');
  const isScope = (one: unknown): one is string => typeof one === 'string' && one !== '' && one.length <= MOST_CHARS;
  if (!Array.isArray(scopes) || scopes.length > MOST_SCOPES || !scopes.every(isScope))
    throw errors.invalidField('scopes', `must be a list of at most ${MOST_SCOPES} texts`);
  return asSet(scopes);
}
