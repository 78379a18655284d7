import { createHmac, randomBytes } from 'node:crypto';
import type { MasterKeys } from '../../kernel/secrets/index.ts';

/**
 * Which platform answers at an address: all servers of a platform have its master key, and prove that with a nonce of the asker.
 * The proof tells nobody else anything.
 */
export interface PlatformProof {
  /** A nonce to ask with: 32 hexadecimal digits. */
  nonce(): string;
  /** The proof for such a nonce, `undefined` for anything else. */
  of(nonce: unknown): string | undefined;
}

/** Proofs by the current master key. */
export function platformProof({ current }: Pick<MasterKeys, 'current'>): PlatformProof {
  return {
    nonce: () => randomBytes(16).toString('hex'),
    of: (nonce) =>
      typeof nonce === 'string' && NONCE.test(nonce)
        ? createHmac('sha256', current().bytes).update(`proof of the platform: ${nonce}`).digest('hex')
        : undefined,
  };
}

const NONCE = /^[0-9a-f]{32}$/;
