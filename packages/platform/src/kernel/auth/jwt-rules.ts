/** The wire's `customJWTAuthorizer` (shape `CustomJWTAuthorizerConfiguration`), as far as it judges a token. */
export interface JwtAuthorizerConfiguration {
  discoveryUrl: string;
  allowedAudience?: readonly string[];
  allowedClients?: readonly string[];
  allowedScopes?: readonly string[];
  customClaims?: readonly CustomClaim[];
}

export interface CustomClaim {
  inboundTokenClaimName: string;
  inboundTokenClaimValueType: 'STRING' | 'STRING_ARRAY';
  authorizingClaimMatchValue: {
    claimMatchValue: { matchValueString?: string; matchValueStringList?: readonly string[] };
    claimMatchOperator: 'EQUALS' | 'CONTAINS' | 'CONTAINS_ANY';
  };
}

export type Claims = Readonly<Record<string, unknown>>;

/** Why claims do not satisfy the rules; `scope` alone asks for 403 `insufficient_scope`, any other for 401 `invalid_token`. */
export interface RuleFailure {
  kind: 'audience' | 'client' | 'scope' | 'claim';
  message: string;
}

/** Checks everything that is configured; what is not configured is not asked. All that does not hold; empty when all of it does. */
export function checkRules(claims: Claims, rules: JwtAuthorizerConfiguration): RuleFailure[] {
  const { allowedAudience, allowedClients, allowedScopes, customClaims = [] } = rules;
  const failures: RuleFailure[] = [];
  if (allowedAudience && !overlap(strings(claims.aud), allowedAudience))
    failures.push({ kind: 'audience', message: 'The token is for another audience.' });
  // RFC 9068 has client_id; OpenID providers that predate it say azp.
  const client = claims.client_id ?? claims.azp;
  if (allowedClients && !(typeof client === 'string' && allowedClients.includes(client)))
    failures.push({ kind: 'client', message: 'The token was issued to another client.' });
  for (const rule of customClaims)
    if (!checkCustom(claims, rule))
      failures.push({ kind: 'claim', message: `The claim "${rule.inboundTokenClaimName}" is not the one required.` });
  if (allowedScopes && !overlap(scopesOf(claims), allowedScopes))
    failures.push({ kind: 'scope', message: `The token needs one of the scopes: ${allowedScopes.join(' ')}.` });
  return failures;
}

/** `scope` is a string with spaces (RFC 8693); some providers write `scp`, as that or as a list. */
function scopesOf(claims: Claims): string[] {
  return [claims.scope, claims.scp].flatMap((value) => strings(value).flatMap((text) => text.split(' ')));
}

function checkCustom(claims: Claims, rule: CustomClaim): boolean {
  const actual = Object.hasOwn(claims, rule.inboundTokenClaimName) ? claims[rule.inboundTokenClaimName] : undefined;
  const { claimMatchOperator, claimMatchValue } = rule.authorizingClaimMatchValue;
  const wanted = claimMatchValue.matchValueString;
  const anyOf = claimMatchValue.matchValueStringList;
  if (rule.inboundTokenClaimValueType === 'STRING') {
    return claimMatchOperator === 'EQUALS' && typeof actual === 'string' && wanted !== undefined && actual === wanted;
  }
  if (!Array.isArray(actual)) return false;
  if (claimMatchOperator === 'CONTAINS') return wanted !== undefined && actual.includes(wanted);
  return claimMatchOperator === 'CONTAINS_ANY' && anyOf !== undefined && overlap(strings(actual), anyOf);
}

/**
 * What is wrong with rules as they are configured, as a path and a sentence, or `undefined`: a STRING claim takes EQUALS
 * with one value, a STRING_ARRAY claim CONTAINS with one value or CONTAINS_ANY with a list.
 */
export function checkConfiguration(rules: JwtAuthorizerConfiguration): { field: string; message: string } | undefined {
  const { allowedAudience, allowedClients, allowedScopes, customClaims } = rules;
  if (!allowedAudience && !allowedClients && !allowedScopes && !customClaims) {
    return {
      field: 'customJWTAuthorizer',
      message:
        'must have allowedAudience, allowedClients, allowedScopes or customClaims, or any token of the issuer would pass',
    };
  }
  for (const [i, rule] of (customClaims ?? []).entries()) {
    const { claimMatchOperator: operator, claimMatchValue } = rule.authorizingClaimMatchValue;
    const list = claimMatchValue.matchValueStringList !== undefined;
    const fits =
      rule.inboundTokenClaimValueType === 'STRING'
        ? operator === 'EQUALS' && !list
        : (operator === 'CONTAINS' && !list) || (operator === 'CONTAINS_ANY' && list);
    if (!fits) {
      return {
        field: `customClaims[${i}]`,
        message: 'must match a STRING by EQUALS, a STRING_ARRAY by CONTAINS with one value or CONTAINS_ANY with a list',
      };
    }
  }
  return undefined;
}

function strings(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
}

function overlap(actual: readonly string[], allowed: readonly string[]): boolean {
  return actual.some((one) => allowed.includes(one));
}
