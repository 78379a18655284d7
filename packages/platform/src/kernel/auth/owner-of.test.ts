import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ownerOf } from './owner-of.ts';
import type { Principal } from './principal.ts';

const iam = (arn: string, sandboxId?: string, accessKeyId = 'A'): Principal => ({
  kind: 'iam',
  accountId: '123456789012',
  arn,
  accessKeyId,
  tags: {},
  sandboxId,
});
const session = (role: string, name: string) => `arn:aws:sts::123456789012:assumed-role/${role}/${name}`;

it('is the user, whichever key; the role, whatever its session is called; in a sandbox the role there', () => {
  const user = 'arn:aws:iam::123456789012:user/ann';
  expect(ownerOf(iam(user))).toBe(ownerOf(iam(user, undefined, 'B')));
  expect(ownerOf(iam(session('a', 'one')))).toBe(ownerOf(iam(session('a', 'two'))));
  const all = [
    iam(user),
    iam('arn:aws:iam::123456789012:root'),
    iam(session('a', 'one')),
    iam(session('b', 'one')),
    iam(session('a', 'one'), 'one'),
    iam(session('a', 'two'), 'two'),
    iam(session('b', 'one'), 'one'),
  ].map(ownerOf);
  expect(new Set(all).size).toBe(all.length);
});

it('is nobody else by a name that somebody chose', () => {
  const name = fc.stringMatching(/^[A-Za-z0-9_+=,.@-]{2,20}$/);
  fc.assert(
    fc.property(name, name, name, (role, victim, chosen) => {
      const owner = ownerOf(iam(session(role, victim), victim));
      // Who assumes the role outside may call the session as the sandbox is called, and who does so in a sandbox keeps its own.
      expect(ownerOf(iam(session(role, victim)))).not.toBe(owner);
      expect(ownerOf(iam(session(role, victim), `${victim}-`))).not.toBe(owner);
      expect(ownerOf(iam(session(role, chosen), victim))).toBe(owner);
    }),
    { seed: 11 },
  );
});
