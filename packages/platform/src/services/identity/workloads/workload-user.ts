import { errors } from '@agentplatform/contract';
import { decodeJwt } from 'jose';
import { discoveryUrlOf, type JwtAuthenticator } from '../../../kernel/auth/index.ts';

/** The end user that an agent works for: as a caller with the right to name users names him, or as his own token does. */
export type WorkloadUser = { kind: 'id'; id: string } | TokenUser;

/** One who is known by a token of his own. */
export interface TokenUser {
  kind: 'token';
  issuer: string;
  subject: string;
}

export interface UserTokenDeps {
  jwt: JwtAuthenticator;
  /** Why the platform will not call an address; undefined when it may. */
  refusalOf(url: string): Promise<string | undefined>;
}

/** OpenID Connect Discovery 1.0, section 4: an issuer has neither query nor fragment. */
const ISSUER = /^https?:\/\/[^\s?#]+$/;

/**
 * The user of a JWT, whose signature is held to the keys that its own issuer publishes: whoever that is, the user is his.
 * Rejects with ValidationException for what is no such token, 401 for one that is not genuine or has expired, 503 when the
 * issuer cannot be asked.
 */
export async function userOfToken(token: string, accountId: string, deps: UserTokenDeps): Promise<TokenUser> {
  const issuer = issuerOf(token);
  const discoveryUrl = discoveryUrlOf(issuer);
  const refusal = await deps.refusalOf(discoveryUrl);
  if (refusal) throw errors.invalidField('userToken.iss', refusal);
  const { subject } = await deps.jwt.authenticate(token, { accountId, configuration: { discoveryUrl } });
  if (subject === '') throw errors.invalidField('userToken', 'names no user: it has no claim "sub"');
  return { kind: 'token', issuer, subject };
}

function issuerOf(token: string): string {
  let issuer: unknown;
  try {
    issuer = decodeJwt(token).iss;
  } catch (cause) {
    throw errors.invalidField('userToken', 'is not a JSON Web Token', { cause });
  }
  if (typeof issuer === 'string' && ISSUER.test(issuer)) return issuer;
  throw errors.invalidField('userToken', 'names no issuer that could be asked for its keys: "iss" must be an address');
}
