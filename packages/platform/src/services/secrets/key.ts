import { type ArnHome, formatArn } from '@agentplatform/contract';

/** In the table `resources`. */
export const KEY_KIND = 'kms-key';

/** What a key is for, in the words of the wire: a symmetric one wraps other keys, the others sign. */
export const KEY_SPECS = ['SYMMETRIC_DEFAULT', 'RSA_2048', 'ECC_NIST_P256'] as const;
export type KeySpec = (typeof KEY_SPECS)[number];

/** How bytes are signed, in the words of JWS (RFC 7518, section 3.1). */
export type SigningAlgorithm = 'RS256' | 'PS256' | 'ES256';

/** Which algorithms a key signs by. */
export const ALGORITHMS: Readonly<Record<KeySpec, readonly SigningAlgorithm[]>> = {
  SYMMETRIC_DEFAULT: [],
  RSA_2048: ['RS256', 'PS256'],
  ECC_NIST_P256: ['ES256'],
};

export type KeyState = 'Enabled' | 'Disabled' | 'PendingDeletion';

/** What is told of a key: all but the key. */
export interface StoredKey {
  arn: string;
  /** A UUID. */
  id: string;
  accountId: string;
  spec: KeySpec;
  description: string;
  state: KeyState;
  /** When it will be deleted; ms since the epoch. */
  deletionAt: number | undefined;
  /** SubjectPublicKeyInfo in PEM, of a key that signs. */
  publicKey: string | undefined;
  createdAt: number;
  /** ARN of who made it. */
  createdBy: string;
}

export function keyArn({ region, accountId, partition = 'aws' }: ArnHome, id: string): string {
  return formatArn({ partition, service: 'kms', region, accountId, resource: `key/${id}` });
}

/** What of a key its state forbids, as a sentence; undefined when it can be used. */
export function unusable({ arn, state }: Pick<StoredKey, 'arn' | 'state'>): string | undefined {
  if (state === 'Disabled') return `The key ${arn} is disabled.`;
  return state === 'PendingDeletion' ? `The key ${arn} is going to be deleted.` : undefined;
}
