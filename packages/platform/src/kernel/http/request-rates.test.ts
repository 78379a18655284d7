import type { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import type { IamPrincipal, OAuthPrincipal } from '../auth/index.ts';
import { FakeClock } from '../fake-clock.ts';
import { admitBySandbox, RequestRates } from './request-rates.ts';
import { LOOPBACK, TrustedAddresses } from './trusted-addresses.ts';

const trusted = new TrustedAddresses(LOOPBACK);
const from = (remoteAddress: string) => ({ socket: { remoteAddress } as Socket });
const user = (name: string): IamPrincipal => {
  const arn = `arn:aws:iam::123456789012:user/${name}`;
  return { kind: 'iam', accountId: '123456789012', arn, accessKeyId: 'AKIA', tags: {} };
};

function setUp() {
  const clock = new FakeClock();
  return { clock, rates: new RequestRates({ ofPrincipal: 10, refusedOfAddress: 5, trusted, clock }) };
}

describe('rates of requests', () => {
  it('let a caller send so many a second, and say which limit it was and which setting', async () => {
    const { clock, rates } = setUp();
    for (let i = 0; i < 10; i += 1) rates.take(user('mate'), '198.51.100.7', 'GetAgentRuntime');
    const again = (): void => rates.take(user('mate'), '198.51.100.8', 'GetAgentRuntime');
    expect(again).toThrow(
      expect.objectContaining({
        code: 'ThrottlingException',
        retryAfterSeconds: 0.1,
        wireMessage:
          'arn:aws:iam::123456789012:user/mate sent more than 10 requests in a second. Retry with backoff, or raise quotas.requestsPerSecond.',
      }),
    );
    // Another caller of the same address has its own.
    rates.take(user('other'), '198.51.100.7');
    await clock.advance(100);
    expect(again).not.toThrow();
  });

  it('are one for all sessions that a caller makes of his role, and for all issuers that one document names', () => {
    const { rates } = setUp();
    const session = (name: string, sandboxId?: string): IamPrincipal => {
      const arn = `arn:aws:sts::123456789012:assumed-role/worker/${name}`;
      return { ...user(''), arn, sandboxId };
    };
    for (let i = 0; i < 10; i += 1) rates.take(session(`name-${i}`), '198.51.100.7');
    expect(() => rates.take(session('one-more'), '198.51.100.7')).toThrow(/worker\/one-more sent more than 10/);
    // What runs in a sandbox has its own.
    rates.take(session('one-more', 'sandbox'), '198.51.100.7');
    const bearer = (issuer: string): OAuthPrincipal => ({
      kind: 'oauth',
      accountId: '123456789012',
      issuer,
      vouchedBy: 'https://documents.example/of-a-tenant',
      subject: 'me',
      claims: {},
      token: '',
      digest: 'd',
    });
    for (let i = 0; i < 10; i += 1) rates.take(bearer(`https://issuer-${i}`), '198.51.100.7');
    expect(() => rates.take(bearer('https://issuer'), '198.51.100.7')).toThrow('of-a-tenant#me');
  });

  it('call it what the operation calls it', () => {
    const { rates } = setUp();
    for (let i = 0; i < 10; i += 1) rates.take(user('mate'), '198.51.100.7');
    expect(() => rates.take(user('mate'), '198.51.100.7', 'CreateEvent')).toThrow(
      expect.objectContaining({ code: 'ThrottledException', status: 429 }),
    );
  });

  it('do not hold for callers on this machine', () => {
    const { rates } = setUp();
    for (let i = 0; i < 30_000; i += 1) rates.take(user('root'), '127.0.0.1', 'InvokeAgentRuntime');
    for (let i = 0; i < 30_000; i += 1) rates.refused(from('127.0.0.1'));
    expect(rates.admit(from('127.0.0.1'))).toBeUndefined();
  });

  it('admit nothing from an address that is refused too often, until it is less, and all others', async () => {
    const { clock, rates } = setUp();
    for (let i = 0; i < 5; i += 1) {
      expect(rates.admit(from('198.51.100.7'))).toBeUndefined();
      rates.refused(from('198.51.100.7'));
    }
    expect(rates.admit(from('198.51.100.7'))).toMatchObject({
      code: 'ThrottlingException',
      wireMessage:
        '198.51.100.7 had more than 5 requests refused in a second. Correct the credentials, or raise quotas.refusalsPerSecond.',
    });
    expect(rates.admit(from('198.51.100.8'))).toBeUndefined();
    await clock.advance(200);
    expect(rates.admit(from('198.51.100.7'))).toBeUndefined();
  });

  it('have one share for a whole /64', () => {
    const { rates } = setUp();
    for (let i = 0; i < 5; i += 1) rates.refused(from(`2001:db8::${i}`));
    expect(rates.admit(from('2001:db8::ffff'))).toBeDefined();
    expect(rates.admit(from('2001:db8:0:1::1'))).toBeUndefined();
  });

  it('count what a sandbox sends, whoever it says it is, and cannot tell those apart that nothing isolates', async () => {
    const clock = new FakeClock();
    const admit = admitBySandbox(3, trusted, clock);
    for (let i = 0; i < 3; i += 1) expect(admit(from('10.88.0.2'))).toBeUndefined();
    expect(admit(from('10.88.0.2'), 'CreateEvent')).toMatchObject({ code: 'ThrottledException' });
    expect(admit(from('10.88.0.6'))).toBeUndefined();
    for (let i = 0; i < 10; i += 1) expect(admit(from('127.0.0.1'))).toBeUndefined();
    await clock.advance(1000);
    expect(admit(from('10.88.0.2'))).toBeUndefined();
  });
});
