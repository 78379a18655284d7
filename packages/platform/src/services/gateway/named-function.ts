import { errors, parseArn } from '@agentplatform/contract';
import type { Caller } from '../../kernel/service.ts';

/**
 * Whether `caller` may name that function, which a gateway then calls as its role: who may not call it himself had the role's right to it. Throws
 * ValidationException for what is no function of the account and the region, and AccessDeniedException without the right to it.
 */
export async function checkNamedFunction(
  { field, arn }: { field: string; arn: string },
  home: { region: string; accountId: string },
  caller: Caller,
): Promise<void> {
  const named = parseArn(arn);
  const own = named?.service === 'lambda' && named.accountId === home.accountId && named.region === home.region;
  if (!own || !/^function:[a-zA-Z0-9_-]{1,64}(?::\$LATEST)?$/.test(named.resource))
    throw errors.invalidField(field, 'must be the ARN of a function of this account and region, without a version');
  await caller.require('lambda:InvokeFunction', arn.replace(/:\$LATEST$/, ''));
}
