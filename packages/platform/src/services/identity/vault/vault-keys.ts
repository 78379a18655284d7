import type { Caller } from '../../../kernel/service.ts';

/**
 * Keys of accounts that wrap the data keys of vaults. Each method rejects with ValidationException when the key cannot be used, saying why,
 * and AccessDeniedException when the caller has no right to it.
 */
export interface VaultKeys {
  /** Gives the wrapped bytes as a text. */
  wrap(keyArn: string, bytes: Uint8Array, caller: Caller): Promise<string>;
  unwrap(keyArn: string, wrapped: string, caller: Caller): Promise<Uint8Array>;
  /** Resolves when the caller could unwrap with it now. */
  need(keyArn: string, caller: Caller): Promise<void>;
}
