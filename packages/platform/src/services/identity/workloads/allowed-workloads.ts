import type { IncomingHttpHeaders } from 'node:http';
import { type control, errors } from '@agentplatform/contract';
import type { WorkloadIdentity } from './workload-identity.ts';
import type { WorkloadTokens } from './workload-tokens.ts';

/** In which a workload says which it is, beside the token of the user for whom it calls. */
export const WORKLOAD_TOKEN_HEADER = 'workloadaccesstoken';

export interface AllowedWorkloadsDeps {
  tokens: Pick<WorkloadTokens, 'open'>;
  find(accountId: string, name: string): Promise<Pick<WorkloadIdentity, 'owner'> | undefined>;
}

/**
 * Which workloads may bring tokens of users to a resource (`allowedWorkloadConfiguration`). Gives what rejects with AccessDeniedException unless the
 * request shows the workload access token of one that is among `workloadIdentities`, by its name, and belongs to one of `hostingEnvironments`.
 */
export function allowedWorkloads({ tokens, find }: AllowedWorkloadsDeps) {
  return async (
    allowed: control.AllowedWorkloadConfiguration,
    headers: IncomingHttpHeaders,
    accountId: string,
  ): Promise<void> => {
    const { workloadIdentities, hostingEnvironments } = allowed;
    const token = headers[WORKLOAD_TOKEN_HEADER];
    if (typeof token !== 'string')
      throw errors.accessDenied('Only workloads in allowedWorkloadConfiguration may call this with a token.', {
        remedy: 'Send the workload access token of one of them as WorkloadAccessToken, or call through its gateway.',
      });
    const { workload } = await opened(token, accountId);
    const owner = (await find(accountId, workload))?.owner;
    const named = workloadIdentities?.includes(workload) ?? true;
    const hosted = hostingEnvironments?.some(({ arn }) => arn === owner) ?? true;
    if (!named || !hosted)
      throw errors.accessDenied(`The workload ${workload} is not in allowedWorkloadConfiguration.`);
  };

  async function opened(token: string, accountId: string): ReturnType<WorkloadTokens['open']> {
    try {
      return await tokens.open(token, accountId);
    } catch (cause) {
      throw errors.accessDenied('WorkloadAccessToken is not one for this account, or is no longer valid.', { cause });
    }
  }
}
