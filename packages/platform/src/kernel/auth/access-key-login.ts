import { hash, timingSafeEqual } from 'node:crypto';
import type { IamPrincipal } from './principal.ts';
import type { AccessKeyStore } from './sigv4.ts';

/**
 * Judges an access key id and its secret given as user and password, for protocols that know no signatures (the OCI registry).
 * Undefined for anything but an active long-lived key with its own secret. What the principal may do is for the caller to ask.
 */
export async function loginWithAccessKey(
  keys: AccessKeyStore,
  accessKeyId: string,
  secret: string,
): Promise<IamPrincipal | undefined> {
  const known = await keys.find(accessKeyId, undefined);
  // Hashes have one length, so that the comparison tells nothing of the secret's.
  const given = hash('sha256', secret, 'buffer');
  const right = hash('sha256', known?.secretAccessKey ?? '', 'buffer');
  return timingSafeEqual(given, right) ? known?.principal : undefined;
}
