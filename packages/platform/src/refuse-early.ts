import { errors } from '@agentplatform/contract';
import type { Iam } from './kernel/auth/index.ts';
import type { PipelineDeps } from './kernel/http/index.ts';
import type { ResourcePolicies } from './services/resource-policies/index.ts';

/** Throws AccessDeniedException for who may do an action nowhere, so that nobody reads and judges his body first. */
export function createRefuseEarly(
  iam: { authorizer: Pick<Iam['authorizer'], 'allowsSomewhere'> },
  resourcePolicies: Pick<ResourcePolicies, 'all' | 'revision'>,
): PipelineDeps['refuseEarly'] {
  return (principal, action) => {
    if (iam.authorizer.allowsSomewhere({ principal, action, resourcePolicies })) return;
    const who = principal.kind === 'iam' ? principal.arn : 'the caller';
    throw errors.accessDenied(`${who} asks for ${action}: no policy allows it on any resource.`, {
      remedy: 'Ask for a policy that allows it: agentcore iam put-policy.',
    });
  };
}
