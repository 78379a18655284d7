import { object, record, type Shape, text } from '../../../kernel/stored-shape.ts';
import type { WorkloadBearer } from '../workloads/workload-tokens.ts';

/**
 * The state of a consent. STARTED: the caller has the link. ALLOWED: the person agreed here and was sent to the provider. RETURNED: the person came back
 * with a code. EXCHANGING: the platform has sent the code. DONE: the token is in the vault. FAILED: the consent must begin again.
 */
export type AuthorizationStatus = 'STARTED' | 'ALLOWED' | 'RETURNED' | 'EXCHANGING' | 'DONE' | 'FAILED';

/** One consent on its way (the wire's session). */
export interface Authorization {
  /** The last part of the session's URI. */
  id: string;
  bearer: Pick<WorkloadBearer, 'accountId' | 'workload' | 'user' | 'madeAt'>;
  providerArn: string;
  providerId: string;
  scopes: string[];
  resources: string[];
  audiences: string[];
  tokenKey: string;
  returnUrl: string | undefined;
  status: AuthorizationStatus;
  /** Why it failed, in words for the caller. */
  failure: string | undefined;
  /** SHA-256 of the cookie of the browser that it goes by, once there is one. */
  browserHash: string | undefined;
  /** Milliseconds since the epoch. */
  updatedAt: number;
  expiresAt: number;
}

/** What of it nobody may read in the database. */
export interface AuthorizationSecrets {
  customParameters: Record<string, string>;
  customState?: string | undefined;
  /** Of PKCE, once he was sent to the provider. */
  verifier?: string | undefined;
  code?: string | undefined;
}

export const storedAuthorizationSecrets: Shape<AuthorizationSecrets> = object(
  { customParameters: record(text) },
  { customState: text, verifier: text, code: text },
);

const SESSION_URI = 'urn:ietf:params:oauth:request_uri:';

export function sessionUriOf(id: string): string {
  return SESSION_URI + id;
}

/** The id in a session URI; undefined if the URI is not of this platform. */
export function idOfSession(uri: string): string | undefined {
  const id = uri.startsWith(SESSION_URI) ? uri.slice(SESSION_URI.length) : '';
  return /^[\w-]{43}$/.test(id) ? id : undefined;
}
