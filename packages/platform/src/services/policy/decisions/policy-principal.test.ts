import { expect, it } from 'vitest';
import type { IamPrincipal, OAuthPrincipal } from '../../../kernel/auth/index.ts';
import { policyPrincipal } from './policy-principal.ts';

const ACCOUNT = '111122223333';
const signer = (arn: string): IamPrincipal => ({
  kind: 'iam',
  accountId: ACCOUNT,
  arn,
  accessKeyId: 'A',
  tags: { team: 'x' },
});
const bearer = (claims: Record<string, unknown>): OAuthPrincipal => ({
  ...{ kind: 'oauth', accountId: ACCOUNT, issuer: 'https://id', vouchedBy: 'https://id', subject: 'ada', claims },
  ...{ token: 'secret', digest: 'd' },
});

it.each([
  `arn:aws:iam::${ACCOUNT}:user/ada`,
  `arn:aws:sts::${ACCOUNT}:assumed-role/Finance/ada-1`,
  `arn:aws:sts::${ACCOUNT}:assumed-role/Finance/ada-2`,
])('a signer is an IamEntity by its whole ARN, session and all: %s', (arn) => {
  expect(policyPrincipal(signer(arn))).toEqual({ type: 'IamEntity', id: arn, tags: {} });
});

it('claims are tags: texts as they are, all else as JSON; one that is called like an attribute is a tag all the same', () => {
  const claims = {
    sub: 'ada',
    id: 'root',
    scope: 'a b',
    'cognito:groups': ['finance', 'a"b'],
    level: 3,
    vip: true,
    no: null,
  };
  expect(policyPrincipal(bearer(claims))).toEqual({
    ...{ type: 'OAuthUser', id: 'ada' },
    tags: {
      ...{ sub: 'ada', id: 'root', scope: 'a b', 'cognito:groups': '["finance","a\\"b"]', level: '3', vip: 'true' },
    },
  });
});

it('whoever has proven nothing is nobody, and the token is no tag', () => {
  expect(
    policyPrincipal({ kind: 'anonymous', accountId: ACCOUNT, acceptedBy: 'arn', address: '127.0.0.1' }),
  ).toBeUndefined();
  expect(JSON.stringify(policyPrincipal(bearer({ sub: 'ada' })))).not.toContain('secret');
});
