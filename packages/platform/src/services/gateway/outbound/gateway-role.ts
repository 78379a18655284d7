import { errors } from '@agentplatform/contract';
import type { Iam } from '../../../kernel/auth/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import type { Gateway } from '../gateways/gateway.ts';

/** The gateway's role as a caller: what a gateway does elsewhere, it does in its name. `given`: by whoever defined the target that it does it for. */
export function gatewayRole(
  { accountId, definition: { roleArn } }: Gateway,
  roleMay: Iam['roleMay'],
  given: readonly string[] = [],
): Caller {
  return {
    accountId,
    require: async (action, resource) => {
      if (roleMay(roleArn, action, resource, given)) return;
      throw errors.accessDenied(`The role of the gateway, ${roleArn}, may not ${action} on ${resource}.`, {
        remedy: 'Give the role a policy that allows it: agentcore iam put-policy.',
      });
    },
  };
}
