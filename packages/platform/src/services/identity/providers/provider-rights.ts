import type { RequestContext } from '../../../kernel/service.ts';
import type { TokenVaults } from '../vault/token-vaults.ts';
import type { WorkloadTokens } from '../workloads/workload-tokens.ts';
import type { CredentialProviders } from './credential-providers.ts';

export interface ProviderRightsDeps {
  vaults: Pick<TokenVaults, 'arnOf'>;
  tokens: Pick<WorkloadTokens, 'open'>;
  /** ARN of the workload identity of that name. */
  workloadArn(accountId: string, name: string): string;
}

type Providers = Pick<CredentialProviders<unknown>, 'arnOf'>;

/** What the caller of an operation about credential providers must be allowed: all of it. */
export function providerRights({ vaults, tokens, workloadArn }: ProviderRightsDeps, providers: Providers) {
  return {
    /** One provider, and the vault that it is in. */
    one: ({ name }: { name: string }, { accountId }: RequestContext): [string, string] => [
      providers.arnOf(accountId, name),
      vaults.arnOf(accountId),
    ],
    list: (_: unknown, { accountId }: RequestContext): string => vaults.arnOf(accountId),
    /**
     * To be given a credential: the provider, the workload that the token is of, and the vault. Rejects with UnauthorizedException for a
     * token that is not one of this account.
     */
    async use(
      call: { workloadIdentityToken: string; resourceCredentialProviderName: string },
      { accountId }: RequestContext,
    ): Promise<[string, string, string]> {
      const { workload } = await tokens.open(call.workloadIdentityToken, accountId);
      const provider = providers.arnOf(accountId, call.resourceCredentialProviderName);
      return [provider, workloadArn(accountId, workload), vaults.arnOf(accountId)];
    },
  };
}
