import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import type { IamPrincipal, OAuthPrincipal } from '../../../kernel/auth/index.ts';
import { CarriedSessions } from './carried-sessions.ts';

const accountId = '111122223333';
const signer: IamPrincipal = {
  ...{ kind: 'iam', accountId, accessKeyId: 'A', tags: {} },
  arn: `arn:aws:iam::${accountId}:user/ada`,
};
const bearer = (claims: Record<string, unknown>): OAuthPrincipal => ({
  ...{ kind: 'oauth', accountId, issuer: 'https://id', vouchedBy: 'https://id', subject: 'ada', claims },
  ...{ token: 'secret', digest: 'd' },
});
const key = randomBytes(32);
const sessions = new CarriedSessions(key);
const named = (principal: IamPrincipal | OAuthPrincipal, id: string | undefined = 's') => ({
  principal,
  accountId,
  id,
});

it('a session comes back as it was sealed, with its owner and whom policies decide about', () => {
  const sealed = sessions.seal(named(signer), undefined) ?? '';
  expect(sessions.open(sealed, accountId)).toEqual({
    ...{ accountId, id: 's', owner: signer.arn, principal: { type: 'IamEntity', id: signer.arn, tags: {} } },
  });
  const claims = { groups: ['finance'], team: 'a' };
  const ofUser = sessions.open(sessions.seal(named(bearer(claims)), undefined) ?? '', accountId);
  expect(ofUser).toMatchObject({
    ...{
      owner: 'https://id#ada',
      principal: { type: 'OAuthUser', id: 'ada', tags: { groups: '["finance"]', team: 'a' } },
    },
  });
  // It goes on as it came, whoever brings it on and whatever session he names.
  const on = sessions.seal(named(signer, 'other'), ofUser) ?? '';
  expect(sessions.open(on, accountId)).toEqual(ofUser);
});

it('there is none to be carried without a session, for nobody, and of a caller whose claims are too long', () => {
  expect(sessions.seal({ principal: signer, accountId, id: undefined }, undefined)).toBeUndefined();
  const nobody = { kind: 'anonymous', accountId, acceptedBy: 'arn', address: '127.0.0.1' } as const;
  expect(sessions.seal({ principal: nobody, accountId, id: 's' }, undefined)).toBeUndefined();
  const long = (bytes: number) => bearer({ long: randomBytes(bytes).toString('hex') });
  expect(sessions.seal(named(long(200)), undefined)).toBeDefined();
  expect(sessions.seal(named(long(2_000)), undefined)).toBeUndefined();
});

it('nobody forges one: altered, of another account, of another key, and what is none at all', () => {
  const sealed = sessions.seal(named(signer), undefined) ?? '';
  const refused = { code: 'UnauthorizedException' };
  const altered = `${sealed.slice(0, 20)}${sealed[20] === 'A' ? 'B' : 'A'}${sealed.slice(21)}`;
  for (const text of [altered, '', 'A'.repeat(80), 'A'.repeat(4_000)])
    expect(() => sessions.open(text, accountId)).toThrow(expect.objectContaining(refused));
  expect(() => sessions.open(sealed, '444455556666')).toThrow(expect.objectContaining(refused));
  expect(() => new CarriedSessions(randomBytes(32)).open(sealed, accountId)).toThrow(expect.objectContaining(refused));
  expect(new CarriedSessions(key).open(sealed, accountId).id).toBe('s');
});
