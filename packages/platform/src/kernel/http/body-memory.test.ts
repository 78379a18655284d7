import { ServiceError } from '@agentplatform/contract';
import { expect, it } from 'vitest';
import type { Principal } from '../auth/index.ts';
import { BodyMemory } from './body-memory.ts';
import { TrustedAddresses } from './trusted-addresses.ts';

const MIB = 2 ** 20;
const user = (name: string): Principal => ({
  ...{ kind: 'iam', accountId: '111122223333', accessKeyId: 'AKIA', tags: {} },
  arn: `arn:aws:iam::111122223333:user/${name}`,
});
const memory = () => new BodyMemory({ totalBytes: 8 * MIB, trusted: new TrustedAddresses(['127.0.0.0/8']) });

/** The status that it is refused with; 200 when it is not. */
function status(take: () => void): number {
  try {
    take();
    return 200;
  } catch (error) {
    if (error instanceof ServiceError) return error.status;
    throw error;
  }
}

it('one caller has half, whichever requests he has, and others what is left', () => {
  const bodies = memory();
  const [first, second, other] = ['ada', 'ada', 'bob'].map((name) => bodies.of(user(name), '192.0.2.1'));
  first?.take(3 * MIB);
  expect(status(() => second?.take(2 * MIB))).toBe(429);
  second?.take(MIB);
  expect(status(() => other?.take(3 * MIB))).toBe(503);
  other?.take(2 * MIB);
  expect(bodies.taken).toBe(6 * MIB);
  first?.release();
  first?.release();
  second?.take(MIB);
  for (const held of [second, other]) held?.release();
  expect(bodies.taken).toBe(0);
});

it('the last quarter is for short bodies', () => {
  const bodies = memory();
  for (const name of ['ada', 'bob']) bodies.of(user(name), '192.0.2.1').take(3 * MIB);
  expect(status(() => bodies.of(user('eve'), '192.0.2.1').take(65 * 1024))).toBe(503);
  const short = Array.from({ length: 32 }, () => bodies.of(user('eve'), '192.0.2.1'));
  expect(short.map((held) => status(() => held.take(64 * 1024)))).toEqual(Array(32).fill(200));
  expect(status(() => bodies.of(user('mallory'), '192.0.2.1').take(1))).toBe(503);
});

it('whom nobody knows has the share of his address; who is trusted, or stands for many, has none of his own', () => {
  const bodies = memory();
  bodies.of(undefined, '192.0.2.1').take(4 * MIB);
  expect(status(() => bodies.of(undefined, '192.0.2.1').take(1))).toBe(429);
  expect(status(() => bodies.of(user('ada'), '192.0.2.1').take(1))).toBe(200);
  const proxy = memory();
  proxy.of(undefined, '127.0.0.1').take(6 * MIB);
  expect(status(() => proxy.of(user('ada'), '127.0.0.1').take(3 * MIB))).toBe(503);
});
