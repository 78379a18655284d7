import { hash } from 'node:crypto';
import { errors } from '@agentplatform/contract';
import { type JWTPayload, type JWTVerifyGetKey, errors as joseErrors, jwtVerify } from 'jose';
import type { Clock } from '../clock.ts';
import { Lru } from '../lru.ts';
import { discoveryUrlOf } from './discovery-url.ts';
import { type Claims, checkRules, type JwtAuthorizerConfiguration, type RuleFailure } from './jwt-rules.ts';
import type { Issuer, OidcDiscovery } from './oidc-discovery.ts';
import type { OAuthPrincipal } from './principal.ts';

/** Whose authorizer a token is presented to. */
export interface JwtRealm {
  /** Of the resource. */
  accountId: string;
  /** ARN of the resource; absent where a token is only looked at, and its bearer is let in nowhere. */
  resource?: string;
  configuration: JwtAuthorizerConfiguration;
  /** PEM of the authority that vouches for the provider's certificates, beside the usual ones. */
  certificateAuthority?: string | undefined;
  /** RFC 9728 metadata address, named in the challenge of MCP servers. */
  resourceMetadataUrl?: string | undefined;
  /** What a challenge calls the scopes that are asked for; their own names when absent. */
  advertisedScopes?: readonly string[] | undefined;
}

export interface JwtAuthenticator {
  /**
   * Verifies a bearer token against a resource's own authorizer. Throws 401 `UnauthorizedException` or 403
   * `AccessDeniedException` with a `WWW-Authenticate` header (RFC 6750), 503 when the provider cannot be reached.
   */
  authenticate(token: string | undefined, realm: JwtRealm): Promise<OAuthPrincipal>;
}

/** Pinned: signatures that only the holder of a private key can make. Never `none`, never HS*. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
const MAX_TOKEN_CHARS = 16_384;
/** Of a header; the answer's body has all of it. */
const MAX_DESCRIPTION_CHARS = 2_000;
const SKEW_SECONDS = 60;
/** How long a verified token is believed without verifying it again; its own end and new keys end that sooner. */
const REMEMBER_MS = 60_000;

interface Remembered {
  payload: JWTPayload;
  generation: number;
  until: number;
}

export function createJwtAuthenticator(deps: { discovery: OidcDiscovery; clock: Clock }): JwtAuthenticator {
  const { discovery, clock } = deps;
  const remembered = new Lru<string, Remembered>(5_000);

  async function verifyWith(token: string, issuer: Issuer): Promise<JWTPayload> {
    const options = {
      algorithms: ALGORITHMS,
      issuer: issuer.issuer,
      clockTolerance: SKEW_SECONDS,
      currentDate: new Date(clock.now()),
      requiredClaims: ['exp'],
    };
    try {
      return (await jwtVerify(token, issuer.getKey, options)).payload;
    } catch (error) {
      // Tokens without `kid` may fit several published keys; jose hands them out one by one.
      if (!(error instanceof joseErrors.JWKSMultipleMatchingKeys)) throw error;
      for await (const key of error) {
        const one: JWTVerifyGetKey = async () => key;
        try {
          return (await jwtVerify(token, one, options)).payload;
        } catch (inner) {
          if (!(inner instanceof joseErrors.JWSSignatureVerificationFailed)) throw inner;
        }
      }
      throw new joseErrors.JWSSignatureVerificationFailed();
    }
  }

  async function verify(
    token: string,
    discoveryUrl: string,
    ca: string | undefined,
  ): Promise<{ payload: JWTPayload; digest: string }> {
    const issuer = await discovery.issuer(discoveryUrl, ca);
    const digest = hash('sha256', `${discoveryUrl}\n${token}\n${ca ?? ''}`, 'base64');
    const known = remembered.get(digest);
    if (known && known.generation === issuer.generation && clock.now() < known.until)
      return { payload: known.payload, digest };
    let current = issuer;
    const payload = await verifyWith(token, current).catch(async (error: unknown) => {
      if (!(error instanceof joseErrors.JWKSNoMatchingKey)) throw error;
      current = await discovery.refreshed(discoveryUrl, ca);
      if (current.generation === issuer.generation) throw error;
      return verifyWith(token, current);
    });
    assertIssuedAt(payload, clock.now());
    const until = Math.min(clock.now() + REMEMBER_MS, tokenEnd(payload));
    remembered.set(digest, { payload, generation: current.generation, until });
    return { payload, digest };
  }

  return {
    async authenticate(token, realm) {
      const { configuration } = realm;
      if (!token) throw challenge(realm, undefined, 'The request carries no bearer token.');
      if (token.length > MAX_TOKEN_CHARS) {
        throw challenge(realm, 'invalid_token', `The token is longer than ${MAX_TOKEN_CHARS} characters.`);
      }
      let verified: { payload: JWTPayload; digest: string };
      try {
        verified = await verify(token, configuration.discoveryUrl, realm.certificateAuthority);
      } catch (error) {
        if (error instanceof joseErrors.JOSEError) throw challenge(realm, 'invalid_token', explain(error));
        throw errors.unavailable("The token cannot be verified, for its issuer's keys cannot be fetched.", {
          cause: error,
        });
      }
      const { payload, digest } = verified;
      const failures = checkRules(payload, configuration);
      if (failures.length > 0) throw unfit(realm, failures);
      return {
        kind: 'oauth',
        accountId: realm.accountId,
        acceptedBy: realm.resource,
        issuer: payload.iss ?? '',
        vouchedBy: vouching(payload.iss ?? '', configuration.discoveryUrl),
        discoveryUrl: realm.certificateAuthority === undefined ? configuration.discoveryUrl : undefined,
        subject: payload.sub ?? '',
        claims: payload,
        token,
        digest,
      };
    },
  };
}

/** When a token with these claims counts no more, in milliseconds since the epoch. */
export function tokenEnd({ exp }: Claims): number {
  return ((typeof exp === 'number' ? exp : 0) + SKEW_SECONDS) * 1000;
}

/** As `OAuthPrincipal.vouchedBy`. Below its name is not enough: at such places others may have pages of their own. */
function vouching(issuer: string, discoveryUrl: string): string {
  return discoveryUrlOf(issuer) === discoveryUrl ? issuer : discoveryUrl;
}

/** jose checks `iat` only together with a maximum age. */
function assertIssuedAt(payload: JWTPayload, now: number): void {
  if (payload.iat !== undefined && !(payload.iat <= now / 1000 + SKEW_SECONDS)) {
    throw new joseErrors.JWTClaimValidationFailed('issued in the future', payload, 'iat', 'check_failed');
  }
}

function explain(error: InstanceType<typeof joseErrors.JOSEError>): string {
  if (error instanceof joseErrors.JWTExpired) return 'The token has expired.';
  if (error instanceof joseErrors.JWTClaimValidationFailed) {
    if (error.claim === 'iss') return 'The token is of another issuer.';
    if (error.claim === 'nbf' || error.claim === 'iat') return 'The token is not valid yet.';
    return `The claim "${error.claim}" of the token is missing or wrong.`;
  }
  if (error instanceof joseErrors.JOSEAlgNotAllowed) return 'The algorithm of the token is not accepted.';
  if (error instanceof joseErrors.JWKSNoMatchingKey)
    return 'The token is signed with a key that its issuer does not publish.';
  if (error instanceof joseErrors.JWSSignatureVerificationFailed) return 'The signature of the token is wrong.';
  return 'The token is malformed.';
}

/** All at once, so that its bearer need not find out one by one. 403 is said only to a token that is right in everything else (RFC 6750 section 3.1). */
function unfit(realm: JwtRealm, failures: readonly RuleFailure[]): Error {
  const message = failures.map((failure) => failure.message).join(' ');
  const scoped = failures.some(({ kind }) => kind === 'scope');
  const code = failures.every(({ kind }) => kind === 'scope') ? 'insufficient_scope' : 'invalid_token';
  return challenge(realm, code, message, scoped);
}

/** `scoped`: whether scopes are asked for. */
function challenge(
  realm: JwtRealm,
  code: 'invalid_token' | 'insufficient_scope' | undefined,
  message: string,
  scoped = code === undefined,
): Error {
  const scopes = (realm.advertisedScopes ?? realm.configuration.allowedScopes)?.join(' ');
  const parts = [
    code && `error="${code}"`,
    code && `error_description="${quotable(message).slice(0, MAX_DESCRIPTION_CHARS)}"`,
    scopes && scoped && `scope="${quotable(scopes)}"`,
    realm.resourceMetadataUrl && `resource_metadata="${quotable(realm.resourceMetadataUrl)}"`,
  ].filter((part) => part !== undefined && part !== false && part !== '');
  const headers = { 'www-authenticate': parts.length > 0 ? `Bearer ${parts.join(', ')}` : 'Bearer' };
  return code === 'insufficient_scope'
    ? errors.accessDenied(message, { headers })
    : errors.unauthorized(message, { headers });
}

/** RFC 6750 section 3: printable ASCII without quote and backslash. */
function quotable(text: string): string {
  return text.replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "'");
}
