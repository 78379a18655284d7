import { expect, it } from 'vitest';
import { SessionQuotaError } from './session-quota.ts';
import { house, key } from './testing/session-house.ts';

const id = (n: number) => ({ ...key, sessionId: `session-${n}`.padEnd(33, '0') });

it('lets an account have so many live sessions, also when all of them begin at once', async () => {
  const { acquire, provider, sessions } = house({ maxPerAccount: 3, maxConcurrentStarts: 8 });
  const calls = await Promise.allSettled(Array.from({ length: 10 }, (_, n) => acquire(id(n))));
  expect(calls.map(({ status }) => status)).toEqual([
    ...Array.from({ length: 3 }, () => 'fulfilled'),
    ...Array.from({ length: 7 }, () => 'rejected'),
  ]);
  for (const call of calls) if (call.status === 'rejected') expect(call.reason).toBeInstanceOf(SessionQuotaError);
  expect(provider.created).toHaveLength(3);

  // The live ones go on, and the account of a neighbour is another matter.
  expect((await acquire(id(1))).session.row.sessionId).toBe(id(1).sessionId);
  const other = {
    ...id(1),
    accountId: '999999999999',
    resourceArn: key.resourceArn.replace(key.accountId, '9'.repeat(12)),
  };
  await acquire(other);

  // An end makes room.
  await sessions.stop(id(0));
  await acquire(id(8));
  await expect(acquire(id(9))).rejects.toThrow('The account has 3 live sessions, which is the limit');
});
