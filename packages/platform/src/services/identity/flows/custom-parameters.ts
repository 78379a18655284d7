import { errors } from '@agentplatform/contract';
import { VENDORS } from '../providers/vendors.ts';
import type { TokenRequest } from './token-request.ts';

/** What the platform alone says to a provider, at its authorization page or its token endpoint. */
const OWN = new Set([
  ...[
    'response_type',
    'response_mode',
    'client_id',
    'redirect_uri',
    'state',
    'scope',
    'code_challenge',
    'code_challenge_method',
  ],
  // Each may stand for all of them (RFC 9101, RFC 9126).
  ...['request', 'request_uri'],
  ...[
    'grant_type',
    'client_secret',
    'client_assertion',
    'client_assertion_type',
    'code',
    'code_verifier',
    'refresh_token',
  ],
  ...['assertion', 'subject_token', 'actor_token', 'actor_token_type'],
]);
/** Of names and values together: they stand in an address, and on the page that asks. */
const MAX_CHARS = 8192;

/**
 * Checks the parameters of a caller. They may add to those of the platform and the vendor, but not replace one. Throws ValidationException with the name of
 * a parameter that would replace another. A parameter with the same value as the vendor's is allowed.
 */
export function checkCustomParameters({
  provider,
  audiences,
  customParameters,
}: Pick<TokenRequest, 'provider' | 'audiences' | 'customParameters'>): void {
  const { title, authorizationParameters, onBehalfOfParameters } = VENDORS[provider.data.vendor];
  const vendors = new Map(Object.entries({ ...authorizationParameters, ...onBehalfOfParameters }));
  let chars = 0;
  for (const [name, value] of Object.entries(customParameters)) {
    const field = `customParameters.${name}`;
    const known = asServersRead(name);
    if (OWN.has(known)) throw errors.invalidField(field, 'is said by the platform itself');
    const fixed = vendors.get(known);
    if (fixed !== undefined && (fixed !== value || known !== name))
      throw errors.invalidField(field, `is always ${fixed} at ${title}`);
    chars += name.length + value.length;
  }
  if (chars > MAX_CHARS) throw errors.invalidField('customParameters', `have more than ${MAX_CHARS} characters`);
  const audience = vendors.get('audience');
  if (audience !== undefined && audiences.some((one) => one !== audience))
    throw errors.invalidField('audiences', `must be ${audience} at ${title}, or absent`);
}

/** Some servers look at no case, and take dots and dashes for underscores. */
function asServersRead(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '_');
}
