import { type control, errors, resourceArn } from '@agentplatform/contract';
import type { HandlersOf } from '../../../kernel/service.ts';
import type { SecretsPort } from '../../secrets/index.ts';
import { ConcurrentVaultChange } from './errors.ts';
import { DEFAULT_VAULT, type TokenVault } from './token-vault.ts';
import type { TokenVaults } from './token-vaults.ts';

export interface VaultOperationsDeps {
  vaults: TokenVaults;
  keys: Pick<SecretsPort, 'key'>;
  region: string;
}

/** What this room serves. */
export const VAULT_OPERATIONS = ['GetTokenVault', 'SetTokenVaultCMK', 'ResetTokenVaultKeyMaterial'] as const;
export type VaultOperation = (typeof VAULT_OPERATIONS)[number];

/** The token vault of an account, and whose key it is under. */
export function vaultOperations({ vaults, keys, region }: VaultOperationsDeps): HandlersOf<VaultOperation> {
  const resource = (
    { tokenVaultId = DEFAULT_VAULT }: { tokenVaultId?: string },
    { accountId }: { accountId: string },
  ) => resourceArn('token-vault', { region, accountId }, tokenVaultId);

  return {
    GetTokenVault: {
      resource,
      async handle({ tokenVaultId }, { accountId }) {
        needDefault(tokenVaultId);
        return view(await vaults.get(accountId));
      },
    },
    SetTokenVaultCMK: {
      resource,
      async handle({ tokenVaultId, kmsConfiguration }, ctx) {
        needDefault(tokenVaultId);
        const arn = keyOf(kmsConfiguration);
        try {
          return view(await vaults.rewrap(arn, ctx));
        } catch (error) {
          if (!(error instanceof ConcurrentVaultChange)) throw error;
          throw errors.concurrentModification(said(error), { remedy: 'Repeat the request.', cause: error });
        }
      },
    },
    ResetTokenVaultKeyMaterial: {
      resource,
      async handle({ tokenVaultId }, { accountId }) {
        needDefault(tokenVaultId);
        const { customerKey } = await vaults.get(accountId);
        if (!customerKey) throw errors.validation('The token vault has no customer managed key, so nothing is lost.');
        const key = await keys.key(accountId, customerKey.arn);
        if (key)
          throw errors.validation(`The key ${key.arn} of the token vault still exists (${key.state}).`, {
            remedy: 'Enable it, or cancel its deletion; SetTokenVaultCMK takes another key.',
          });
        try {
          return view(await vaults.reset(accountId));
        } catch (error) {
          if (!(error instanceof ConcurrentVaultChange)) throw error;
          throw errors.conflict(said(error), { remedy: 'Repeat the request.', cause: error });
        }
      },
    },
  };
}

const said = ({ message }: Error): string => `T${message.slice(1)}.`;

function needDefault(tokenVaultId: string | undefined): void {
  if (tokenVaultId === undefined || tokenVaultId === DEFAULT_VAULT) return;
  throw errors.resourceNotFound(`There is no token vault ${tokenVaultId} in this account.`, {
    remedy: `An account has one: ${DEFAULT_VAULT}.`,
  });
}

/** The key that a request names; undefined for the platform's own. */
function keyOf({ keyType, kmsKeyArn }: control.KmsConfiguration): string | undefined {
  const wanted = keyType === 'CustomerManagedKey';
  if (wanted && kmsKeyArn === undefined)
    throw errors.invalidField('kmsConfiguration.kmsKeyArn', 'is required with keyType CustomerManagedKey');
  if (!wanted && kmsKeyArn !== undefined)
    throw errors.invalidField('kmsConfiguration.kmsKeyArn', 'cannot be given with keyType ServiceManagedKey');
  return kmsKeyArn;
}

function view({ customerKey, modifiedAt }: TokenVault): control.GetTokenVaultResponse {
  const kmsConfiguration: control.KmsConfiguration = customerKey
    ? { keyType: 'CustomerManagedKey', kmsKeyArn: customerKey.arn }
    : { keyType: 'ServiceManagedKey' };
  return { tokenVaultId: DEFAULT_VAULT, kmsConfiguration, lastModifiedDate: new Date(modifiedAt) };
}
