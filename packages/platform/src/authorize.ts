import { errors } from '@agentplatform/contract';
import type { Iam } from './kernel/auth/iam/iam.ts';
import type { PipelineDeps } from './kernel/http/pipeline.ts';
import type { ResourcePolicies } from './services/resource-policies/index.ts';

/** What manages a resource's policy is not subject to it: a mistake in one must not lock its owner out. */
const MANAGES_POLICY = /:(Put|Get|Delete)ResourcePolicy$/;

/** The one gate of every door: asks the caller's policies and the resource's own. What it gives throws AccessDeniedException. */
export function createAuthorize(
  iam: Pick<Iam, 'authorizer'>,
  resourcePolicies: Pick<ResourcePolicies, 'of'>,
): PipelineDeps['authorize'] {
  return ({ principal, action, resource, conditions, sourceIp }) => {
    const context = sourceIp === undefined ? conditions : { ...conditions, 'aws:SourceIp': sourceIp };
    const resourcePolicy = MANAGES_POLICY.test(action) ? undefined : resourcePolicies.of(resource);
    const { allowed, reason } = iam.authorizer.authorize({
      principal,
      action,
      resource,
      context,
      ...(resourcePolicy === undefined ? {} : { resourcePolicy }),
    });
    if (!allowed)
      throw errors.accessDenied(`${reason}.`, {
        remedy: 'Ask for a policy that allows it: agentcore iam put-policy.',
      });
  };
}
