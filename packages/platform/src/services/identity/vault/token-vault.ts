import { type ArnHome, resourceArn } from '@agentplatform/contract';

/** The token vault of an account: the wire knows one. */
export const DEFAULT_VAULT = 'default';

/** In the table `resources`. */
export const TOKEN_VAULT_KIND = 'token-vault';

/** Where an account keeps tokens, and under whose key. */
export interface TokenVault {
  arn: string;
  accountId: string;
  /** Names the data key that texts are sealed with; another after a reset. */
  dataKeyId: string;
  /** The data key, wrapped by a key of the account's; undefined while the platform wraps it. */
  customerKey: { arn: string; wrapped: string } | undefined;
  /** Milliseconds since the epoch. */
  modifiedAt: number;
  /** One more with every change. */
  version: number;
}

export function tokenVaultArn(home: ArnHome): string {
  return resourceArn('token-vault', home, DEFAULT_VAULT);
}
