import { describe, expect, it } from 'vitest';
import { FakeClock } from '../fake-clock.ts';
import type { AuditRecord } from './audit-record.ts';
import { AuditTrail } from './audit-trail.ts';

function setUp() {
  const clock = new FakeClock();
  const kept: AuditRecord[] = [];
  let made = 0;
  const trail = new AuditTrail({ record: (row) => kept.push(row), newRequestId: () => `made-${++made}`, clock });
  const take = (over: Partial<AuditRecord> = {}): void =>
    trail.take({
      at: clock.now(),
      requestId: 'asked',
      operation: 'GetMemory',
      accountId: undefined,
      principal: undefined,
      resource: undefined,
      status: 403,
      errorCode: 'InvalidSignatureException',
      sourceIp: '198.51.100.7',
      userAgent: 'probe',
      ...over,
    });
  return { clock, kept, trail, take };
}

/** Rows, and what they stand for. */
const sum = (rows: readonly AuditRecord[]): number => rows.reduce((total, { count = 1 }) => total + count, 0);

describe('the way into the audit trail', () => {
  it('makes two rows of 40,000 refusals without credentials: the first of them and a count', async () => {
    const { clock, kept, take } = setUp();
    const began = clock.now();
    for (let i = 0; i < 40_000; i += 1) {
      if (i === 20_000) await clock.advance(1000);
      take({ requestId: `asked-${i}` });
    }
    expect(kept).toHaveLength(1);
    await clock.advance(300_000);
    expect(kept).toMatchObject([
      { requestId: 'asked-0', userAgent: 'probe' },
      { requestId: 'made-1', operation: 'GetMemory', sourceIp: '198.51.100.7', count: 39_999 },
    ]);
    expect(kept[1]).toMatchObject({ at: began, until: began + 1000 });
    // The next interval begins anew, and an idle one keeps nothing.
    await clock.advance(600_000);
    take();
    expect(kept).toHaveLength(3);
  });

  it('tells address, operation, answer and caller apart', () => {
    const { kept, trail, take } = setUp();
    for (let i = 0; i < 2; i += 1) {
      take();
      take({ sourceIp: '198.51.100.8' });
      take({ operation: 'CreateEvent' });
      take({ status: 404, errorCode: 'ResourceNotFoundException' });
    }
    trail.close();
    expect(kept.map(({ count = 1 }) => count)).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
  });

  it('keeps everything one by one that was done, or failed in the platform', async () => {
    const { clock, kept, take } = setUp();
    const principal = 'arn:aws:iam::123456789012:user/mate';
    for (let i = 0; i < 1000; i += 1) {
      take({ principal, status: 201, errorCode: undefined });
      take({ principal, status: 500, errorCode: 'InternalServerException' });
      // A token of an answer that took none.
      take({ status: 200, errorCode: undefined });
    }
    await clock.advance(300_000);
    expect(kept).toHaveLength(3000);
    expect(kept.every(({ count }) => count === undefined)).toBe(true);
  });

  it.each([
    [424, 'RuntimeClientError'],
    [499, 'ClientLeft'],
  ])('counts answers of %i, of which something may have been done, once they are many', async (status, errorCode) => {
    const { clock, kept, take } = setUp();
    const principal = 'arn:aws:sts::123456789012:assumed-role/agents/a';
    for (let i = 0; i < 40_000; i += 1) {
      take({ requestId: `asked-${i}`, principal, accountId: '123456789012', status, errorCode, resource: `arn:${i}` });
      // It takes nothing from what is told of others.
      if (i % 1000 === 0) take({ principal: `${principal}${i}`, status, errorCode });
    }
    await clock.advance(300_000);
    const [own, others] = [true, false].map((is) => kept.filter((row) => (row.principal === principal) === is));
    expect(own).toHaveLength(101);
    expect(own?.[99]).toMatchObject({ requestId: 'asked-99', resource: 'arn:99' });
    expect(own?.[100]).toMatchObject({ count: 39_900, status, errorCode, accountId: '123456789012' });
    expect(others).toHaveLength(40);
  });

  it('counts what a known caller is refused once that is often', async () => {
    const { clock, kept, take } = setUp();
    for (let i = 0; i < 1000; i += 1)
      take({ principal: 'arn:aws:iam::123456789012:user/mate', accountId: '123456789012' });
    await clock.advance(300_000);
    expect(kept).toHaveLength(21);
    expect(kept[20]).toMatchObject({ count: 980, accountId: '123456789012', resource: undefined });
  });

  it('holds a bounded number of kinds, of one address fewer, and loses none of the rest', async () => {
    const { clock, kept, take } = setUp();
    // One address fills its own share.
    for (let i = 0; i < 5000; i += 1) take({ operation: `Operation${i}` });
    expect(kept).toHaveLength(50);
    take({ sourceIp: '198.51.100.8' });
    expect(kept).toHaveLength(51);
    for (let i = 0; i < 5000; i += 1) take({ sourceIp: `10.0.${i >> 8}.${i & 255}` });
    await clock.advance(300_000);
    expect(kept).toHaveLength(501);
    expect(sum(kept)).toBe(10_001);
    expect(kept.at(-1)).toMatchObject({ operation: 'other', status: 403, sourceIp: undefined });
  });

  it('never leaves out which known caller was refused, however many kinds he and strangers have', async () => {
    const { clock, kept, take } = setUp();
    const accountId = '123456789012';
    const mate = { principal: `arn:aws:iam::${accountId}:user/mate`, accountId, errorCode: 'AccessDeniedException' };
    for (let i = 0; i < 5000; i += 1) take({ sourceIp: `10.0.${i >> 8}.${i & 255}` });
    const strangers = kept.length;
    // Strangers have taken no place of his: it is kept singly.
    take({ ...mate, resource: 'arn:secret' });
    expect(kept[strangers]).toMatchObject({ ...mate, operation: 'GetMemory', resource: 'arn:secret' });
    for (let i = 0; i < 500; i += 1) take({ ...mate, operation: `Operation${i}` });
    await clock.advance(300_000);
    const his = kept.filter(({ principal }) => principal === mate.principal);
    expect(sum(his)).toBe(501);
    expect(his.at(-1)).toMatchObject({ operation: 'other', accountId, count: 451 });
  });

  it('counts a bounded number of names that callers choose, and the rest by their role or by who vouches for them', async () => {
    const { clock, kept, take } = setUp();
    const role = (session: string) => `arn:aws:sts::123456789012:assumed-role/worker/${session}`;
    for (let i = 0; i < 30_000; i += 1) take({ principal: role(`s${i}`), accountId: '123456789012' });
    for (let i = 0; i < 30_000; i += 1) take({ principal: `https://idp#${i}`, accountId: '123456789012' });
    await clock.advance(300_000);
    expect(sum(kept)).toBe(60_000);
    expect(kept.length).toBeLessThan(2000);
    expect(kept.every(({ principal }) => principal !== undefined)).toBe(true);
    expect(kept).toContainEqual(
      expect.objectContaining({ principal: 'arn:aws:iam::123456789012:role/worker', count: 28_500 }),
    );
    expect(kept).toContainEqual(expect.objectContaining({ principal: 'https://idp#*', count: 30_000 }));
  });

  it('holds a bounded number of counts, and keeps them early when there are more', async () => {
    const { clock, kept, trail, take } = setUp();
    for (let i = 0; i < 30_000; i += 1) take({ principal: `https://idp-${i}#me`, accountId: '123456789012' });
    expect(sum(kept)).toBeGreaterThan(20_000);
    await clock.advance(300_000);
    trail.close();
    expect(sum(kept)).toBe(30_000);
  });

  it('gives one share to a whole /64', () => {
    const { kept, take } = setUp();
    for (let i = 0; i < 400; i += 1) take({ sourceIp: `2001:db8::${i.toString(16)}` });
    expect(kept).toHaveLength(50);
  });

  it('keeps what it counted at an orderly end', () => {
    const { kept, trail, take } = setUp();
    for (let i = 0; i < 10; i += 1) take();
    trail.close();
    trail.close();
    expect(sum(kept)).toBe(10);
  });
});
