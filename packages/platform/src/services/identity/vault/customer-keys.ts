import { errors, ServiceError } from '@agentplatform/contract';
import type { SecretsPort } from '../../secrets/index.ts';
import type { VaultKeys } from './vault-keys.ts';

/** Keys of accounts for vaults. A vault whose key is gone says so, and what to do. */
export function customerKeys(keys: Pick<SecretsPort, 'wrap' | 'unwrap' | 'need'>): VaultKeys {
  const orGone = async <Result>(arn: string, work: Promise<Result>): Promise<Result> => {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'ResourceNotFoundException') throw error;
      throw errors.validation(`The key ${arn} of the token vault is deleted, and the tokens in the vault with it.`, {
        remedy: 'ResetTokenVaultKeyMaterial makes the vault usable again; users have to consent again.',
        cause: error,
      });
    }
  };
  return {
    wrap: (arn, bytes, caller) => keys.wrap(arn, bytes, caller),
    unwrap: (arn, wrapped, caller) => orGone(arn, keys.unwrap(arn, wrapped, caller)),
    need: (arn, caller) => orGone(arn, keys.need(arn, caller)),
  };
}
