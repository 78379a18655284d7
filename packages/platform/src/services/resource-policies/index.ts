import { errors } from '@agentplatform/contract';
import { parsePolicy } from '../../kernel/auth/index.ts';
import type { Service } from '../../kernel/service.ts';
import type { ResourcePolicies } from './policy-store.ts';

export { ResourcePolicies, resourcePolicyMigrations } from './policy-store.ts';

/** What this service serves. */
export const RESOURCE_POLICY_OPERATIONS = ['PutResourcePolicy', 'GetResourcePolicy', 'DeleteResourcePolicy'] as const;
export type ResourcePolicyOperation = (typeof RESOURCE_POLICY_OPERATIONS)[number];

/** Policies attached to resources, which the authorizer asks beside those of the caller. */
export function createResourcePoliciesService(
  policies: ResourcePolicies,
): Service<ResourcePolicyOperation, ResourcePolicies> {
  const resource = (input: { resourceArn: string }): string => input.resourceArn;
  const missing = (arn: string) => errors.resourceNotFound(`No resource policy is attached to ${arn}.`);

  return {
    operations: {
      PutResourcePolicy: {
        resource,
        async handle({ resourceArn, policy }, ctx) {
          parsePolicy(policy, 'resource');
          if (!(await policies.put(ctx.accountId, resourceArn, policy))) {
            throw errors.resourceNotFound(`There is no resource ${resourceArn} in this account.`);
          }
          return { policy };
        },
      },
      GetResourcePolicy: {
        resource,
        async handle({ resourceArn }) {
          const policy = policies.of(resourceArn);
          if (policy === undefined) throw missing(resourceArn);
          return { policy };
        },
      },
      DeleteResourcePolicy: {
        resource,
        async handle({ resourceArn }, ctx) {
          if (!(await policies.delete(ctx.accountId, resourceArn))) throw missing(resourceArn);
          return {};
        },
      },
    },
    port: policies,
    start: async () => undefined,
    stop: async () => undefined,
  };
}
