import { type ArnHome, resourceArn } from '@agentplatform/contract';

/** The directory of an account's workload identities: the wire knows one. */
const DIRECTORY = 'default';

/** In the table `resources`. */
export const WORKLOAD_IDENTITY_KIND = 'workload-identity';

/** An agent as a caller of its own, apart from any role and any end user (spec: Identity). */
export interface WorkloadIdentity {
  arn: string;
  /** Unique in the account. */
  name: string;
  /** Addresses that a user may be sent back to after he consented. */
  allowedResourceOauth2ReturnUrls: string[];
  /** ARN of the resource that it was made with and goes with; undefined when a caller made it by itself. */
  owner: string | undefined;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}

export function workloadIdentityArn(home: ArnHome, name: string): string {
  return resourceArn('workload-identity', home, DIRECTORY, name);
}

/** The name of an identity by its ARN. */
export function workloadNameOf(arn: string): string {
  return arn.slice(arn.lastIndexOf('/') + 1);
}

export function directoryArn(home: ArnHome): string {
  return resourceArn('workload-identity-directory', home, DIRECTORY);
}
