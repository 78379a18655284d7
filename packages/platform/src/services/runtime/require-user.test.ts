import { errors } from '@agentplatform/contract';
import { describe, expect, it } from 'vitest';
import type { Principal } from '../../kernel/auth/index.ts';
import { USER_HEADER } from './container-headers.ts';
import { requireUser } from './require-user.ts';

const ARN = 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/a-0123456789';
const iam: Principal = {
  kind: 'iam',
  accountId: '123456789012',
  arn: 'arn:aws:iam::1:user/u',
  accessKeyId: 'A',
  tags: {},
};
const ada: Principal = {
  kind: 'oauth',
  accountId: '123456789012',
  issuer: 'https://idp',
  vouchedBy: 'https://idp',
  subject: 'ada',
  claims: {},
  token: 't',
  digest: 'd',
};

function call(principal: Principal, user: string | undefined, allowed: string[] = []): Promise<void> {
  const context = {
    headers: user === undefined ? {} : { [USER_HEADER]: user },
    principal,
    allowed,
    async require(action: string, resource: string) {
      // By `this`, as the real context does it.
      if (!this.allowed.includes(`${action} ${resource}`)) throw errors.accessDenied(`${action}: not allowed.`);
    },
  };
  return requireUser(context, { runtime: { arn: ARN }, endpoint: { arn: `${ARN}/runtime-endpoint/DEFAULT` } });
}

describe('who may say on whose behalf a call is made', () => {
  it('a signed call with the right to it', async () => {
    const right = `bedrock-agentcore:InvokeAgentRuntimeForUser ${ARN}`;
    const both = [right, `${right}/runtime-endpoint/DEFAULT`];
    await expect(call(iam, 'ada', both)).resolves.toBeUndefined();
    for (const one of both)
      await expect(call(iam, 'ada', [one])).rejects.toMatchObject({ code: 'AccessDeniedException' });
    await expect(call(iam, 'ada')).rejects.toMatchObject({ code: 'AccessDeniedException' });
    await expect(call(iam, undefined)).resolves.toBeUndefined();
  });

  it('the bearer of a token nobody but its subject', async () => {
    await expect(call(ada, 'ada')).resolves.toBeUndefined();
    await expect(call(ada, 'eve')).rejects.toMatchObject({ code: 'AccessDeniedException' });
    await expect(call(ada, undefined)).resolves.toBeUndefined();
  });
});
