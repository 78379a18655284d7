import { errors } from '@agentplatform/contract';
import type { Caller } from '../service.ts';

/** A role that a request hands to a resource. */
export interface PassedRole {
  roleArn: string;
  /** The wire's name of the member that names it. */
  field: string;
}

/** Rejects with AccessDeniedException unless the caller may pass the role on (`iam:PassRole`), and ValidationException for one that does not exist. */
export async function checkPassedRole(
  caller: Caller,
  { roleArn, field }: PassedRole,
  roles: { roleExists(arn: string): Promise<boolean> },
): Promise<void> {
  await caller.require('iam:PassRole', roleArn);
  if (await roles.roleExists(roleArn)) return;
  throw errors.invalidField(field, `names ${roleArn.slice(0, 200)}, which does not exist`, {
    remedy: 'Make it with `agentcore iam create-role`, or use the default role that `agentcore status` shows.',
  });
}
