import { errors } from '@agentplatform/contract';
import { type KnownCall, type RouteSet, readMembers, SIGNED } from '../../../kernel/http/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import type { CredentialProviders } from '../providers/credential-providers.ts';
import type { Oauth2Settings } from '../providers/oauth2-provider.ts';
import type { Checked, CheckWish, ProviderChecks } from './provider-checks.ts';
import { CHECKED_FLOWS } from './provider-steps.ts';
import { asSet } from './token-request.ts';

export interface ProviderCheckRoutesDeps {
  providers: Pick<CredentialProviders<Oauth2Settings>, 'get' | 'arnOf'>;
  checks: Pick<ProviderChecks, 'start' | 'look'>;
}

/** Of the wire's `scopes`. */
const MOST_TEXTS = 100;
const MOST_CHARS = 128;
/** Of the wire's `userToken`. */
const MOST_TOKEN_CHARS = 131_072;
/** Longer than all tries at a provider. */
const PATIENCE_MS = 60_000;

/**
 * `POST /_platform/identity/oauth2-providers/{name}/test`: walks the provider's flow and says which step fails. Where a person has to go on,
 * the answer has the address for him, and the same request with `sessionUri` says what became of it.
 */
export function providerCheckRoutes({ providers, checks }: ProviderCheckRoutesDeps): RouteSet {
  const answer = async (call: KnownCall): Promise<Checked> => {
    const { accountId, params, body, principal } = call;
    // An external secret is read as whoever asks.
    const caller: Caller = { accountId, require: async (action, resource) => call.require(action, resource) };
    const { sessionUri, ...members } = readMembers(body, '{"scopes": ["read"]}');
    const wish = readWish(members);
    const provider = await providers.get(accountId, params.name ?? '');
    const checker = { caller, principal: principal.arn, signal: AbortSignal.timeout(PATIENCE_MS) };
    if (sessionUri === undefined) return checks.start(provider, wish, checker);
    if (typeof sessionUri !== 'string') throw errors.invalidField('sessionUri', 'must be a text');
    return checks.look(provider, sessionUri, checker);
  };
  return {
    name: 'provider-check',
    routes: [
      {
        method: 'POST',
        url: '/_platform/identity/oauth2-providers/:name/test',
        credentials: SIGNED,
        ask(call) {
          const { name = '' } = call.params;
          const resource = providers.arnOf(call.accountId, name);
          return {
            rights: { action: 'agentplatform:TestCredentialProvider', resource },
            answer: async () => ({ name, ...(await answer(call)) }),
          };
        },
      },
    ],
  };
}

/** Rejects with ValidationException by the member's name. */
function readWish({ flow: wanted, userToken, ...lists }: Record<string, unknown>): CheckWish {
  const flow = CHECKED_FLOWS.find((one) => one === wanted);
  if (wanted !== undefined && !flow) throw errors.invalidField('flow', `must be one of ${CHECKED_FLOWS.join(', ')}`);
  if (userToken !== undefined && (typeof userToken !== 'string' || userToken.length > MOST_TOKEN_CHARS))
    throw errors.invalidField('userToken', 'must be a JSON Web Token');
  return {
    flow,
    userToken,
    scopes: readTexts('scopes', lists.scopes),
    audiences: readTexts('audiences', lists.audiences),
  };
}

function readTexts(member: string, given: unknown = []): string[] {
  const isText = (one: unknown): one is string => typeof one === 'string' && one !== '' && one.length <= MOST_CHARS;
  if (!Array.isArray(given) || given.length > MOST_TEXTS || !given.every(isText))
    throw errors.invalidField(member, `must be a list of at most ${MOST_TEXTS} texts`);
  return asSet(given);
}
