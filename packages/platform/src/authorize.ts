import { errors } from '@agentplatform/contract';
import type { Iam } from './kernel/auth/index.ts';
import type { DiskRoom } from './kernel/disk-room.ts';
import type { Authorize } from './kernel/http/index.ts';
import type { Changes } from './kernel/storage/index.ts';
import type { ResourcePolicies } from './services/resource-policies/index.ts';

/** What manages a resource's policy is not subject to it: a mistake in one must not lock its owner out. */
const MANAGES_POLICY = /:(Put|Get|Delete)ResourcePolicy$/;

/** What stands between the ARN of a runtime and the name of an endpoint of it. */
const OF_ENDPOINT = '/runtime-endpoint/';

const OF_MEMORY = /:memory\/[^/*]+$/;
const BY_POLICY = 'Ask for a policy that allows it: agentcore iam put-policy.';
/** For what runs in a sandbox. */
const BY_NAME =
  'Name the memory in an environment variable of what runs there and deploy it again, or ask for a policy that allows it: agentcore iam put-policy.';

/**
 * The one gate of every door: asks the caller's policies and the resource's own. What it gives throws AccessDeniedException, and what
 * `changes.need` throws.
 */
export function createAuthorize(
  iam: Pick<Iam, 'authorizer'>,
  resourcePolicies: Pick<ResourcePolicies, 'of'>,
  changes: Pick<Changes, 'need'>,
): Authorize {
  return ({ principal, action, resource, conditions, sourceIp }) => {
    changes.need();
    const context = sourceIp === undefined ? conditions : { ...conditions, 'aws:SourceIp': sourceIp };
    const at = resource.indexOf(OF_ENDPOINT);
    // An endpoint belongs to its runtime: what the runtime's own policy says of it holds.
    const arns = MANAGES_POLICY.test(action) ? [] : at < 0 ? [resource] : [resource, resource.slice(0, at)];
    const { allowed, reason } = iam.authorizer.authorize({
      principal,
      action,
      resource,
      context,
      resourcePolicies: arns.flatMap((arn) => resourcePolicies.of(arn) ?? []),
    });
    if (allowed) return;
    const inSandbox = principal.kind === 'iam' && principal.sandboxId !== undefined;
    throw errors.accessDenied(`${reason}.`, {
      remedy: inSandbox && OF_MEMORY.test(resource) ? BY_NAME : BY_POLICY,
    });
  };
}

/**
 * The same while the disk fills: what runs in a sandbox, or calls with a token, waits once even the reserve goes to its end, since whatever
 * is answered leaves a row in the audit trail. Who signs with a key of the account can still look, delete and stop.
 */
export function agentsWait(authorize: Authorize, room: Pick<DiskRoom, 'needLast'>): Authorize {
  return (request) => {
    const { principal } = request;
    if (principal.kind !== 'iam' || principal.sandboxId !== undefined) room.needLast();
    authorize(request);
  };
}
