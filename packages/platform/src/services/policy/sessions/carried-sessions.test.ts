import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import type { IamPrincipal, OAuthPrincipal } from '../../../kernel/auth/index.ts';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { principalOf } from '../decisions/policy-principal.ts';
import { type CarriedSession, CarriedSessions, type SessionCaller } from './carried-sessions.ts';

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
const clock = new FakeClock();
const sessions = new CarriedSessions({ key, clock });
const MINUTE = 60_000;
/** Where sessions end whose caller has no token, or one that lasts longer. */
const hour = () => clock.now() + 60 * MINUTE;
const named = (principal: IamPrincipal | OAuthPrincipal, id: string | undefined = 's') => ({
  ...{ principal, accountId, id, vouchedBy: principal.kind === 'iam' ? accountId : 'https://id/doc' },
});
const sealed = (caller: SessionCaller, carried?: CarriedSession) => sessions.seal(caller, carried) ?? '';

it('a session comes back as it was sealed, with its owner, who vouched for him, and whom policies decide about', () => {
  expect(sessions.open(sealed(named(signer)), accountId)).toEqual({
    ...{ accountId, id: 's', owner: signer.arn, first: { id: signer.arn }, vouchedBy: accountId, endsAt: hour() },
  });
  const claims = { groups: ['finance'], team: 'a', exp: clock.now() / 1000 + 9_999 };
  const ofUser = sessions.open(sealed(named(bearer(claims))), accountId);
  expect(ofUser).toEqual({
    ...{ accountId, id: 's', owner: 'https://id#ada', vouchedBy: 'https://id/doc', endsAt: hour() },
    first: { id: 'ada', claims },
  });
  expect(principalOf(ofUser.first)).toEqual({
    ...{ type: 'OAuthUser', id: 'ada', tags: { groups: '["finance"]', team: 'a', exp: String(claims.exp) } },
  });
  // It goes on as it came, whoever brings it on and whatever session he names.
  expect(sessions.open(sealed(named(signer, 'other'), ofUser), accountId)).toEqual(ofUser);
});

it('it ends after an hour, or with the token of its first caller, and nobody who carries it on lengthens it', async () => {
  const over = expect.objectContaining({
    code: 'UnauthorizedException',
    wireMessage: expect.stringMatching(/has ended/),
  });
  const short = { exp: clock.now() / 1000 + 240 };
  const [first, user] = [sealed(named(signer)), sealed(named(bearer(short)))];
  // A token counts for a minute longer, for clocks that differ.
  await clock.advance(5 * MINUTE - 1);
  const on = sealed(named(signer), sessions.open(user, accountId));
  await clock.advance(1);
  for (const text of [user, on]) expect(() => sessions.open(text, accountId)).toThrow(over);
  await clock.advance(54 * MINUTE);
  const later = sealed(named(signer, 'other'), sessions.open(first, accountId));
  await clock.advance(MINUTE);
  for (const text of [first, later]) expect(() => sessions.open(text, accountId)).toThrow(over);
  // The same caller begins it anew.
  expect(sessions.open(sealed(named(signer)), accountId).endsAt).toBe(hour());
  expect(sessions.seal(named(bearer({ exp: 1 })), undefined)).toBeUndefined();
});

it('the same session is the same text while half of its time is left', async () => {
  const text = sealed(named(signer, 'kept'));
  await clock.advance(30 * MINUTE - 1);
  expect(sealed(named(signer, 'kept'))).toBe(text);
  await clock.advance(1);
  const next = sealed(named(signer, 'kept'));
  expect(next).not.toBe(text);
  expect(sessions.open(next, accountId).endsAt).toBe(hour());
});

it('there is none to be carried without a session, for nobody, and of a caller whose claims are too long', () => {
  expect(sessions.seal({ ...named(signer), id: undefined }, undefined)).toBeUndefined();
  const nobody = { kind: 'anonymous', accountId, acceptedBy: 'arn', address: '127.0.0.1' } as const;
  expect(sessions.seal({ principal: nobody, accountId, id: 's', vouchedBy: '' }, undefined)).toBeUndefined();
  const long = (bytes: number) => bearer({ long: randomBytes(bytes).toString('hex'), exp: clock.now() / 1000 + 60 });
  expect(sessions.seal(named(long(200)), undefined)).toBeDefined();
  expect(sessions.seal(named(long(2_000)), undefined)).toBeUndefined();
});

it('nobody forges one: altered, of another account, of another key, and what is none at all', () => {
  const text = sealed(named(signer));
  const refused = { code: 'UnauthorizedException' };
  const altered = `${text.slice(0, 20)}${text[20] === 'A' ? 'B' : 'A'}${text.slice(21)}`;
  for (const none of [altered, '', 'A'.repeat(80), 'A'.repeat(4_000)])
    expect(() => sessions.open(none, accountId)).toThrow(expect.objectContaining(refused));
  expect(() => sessions.open(text, '444455556666')).toThrow(expect.objectContaining(refused));
  expect(() => new CarriedSessions({ key: randomBytes(32), clock }).open(text, accountId)).toThrow(
    expect.objectContaining(refused),
  );
  expect(new CarriedSessions({ key, clock }).open(text, accountId).id).toBe('s');
});
