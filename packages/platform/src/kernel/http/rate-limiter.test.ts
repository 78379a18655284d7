import { describe, expect, it } from 'vitest';
import { FakeClock } from '../fake-clock.ts';
import { RateLimiter } from './rate-limiter.ts';

describe('rate limiter', () => {
  it('lets a second of calls through at once, then as many as time brings', async () => {
    const clock = new FakeClock();
    const limiter = new RateLimiter(5, clock);
    for (let i = 0; i < 5; i += 1) limiter.take('a');
    expect(() => limiter.take('a')).toThrow(/More than 5 calls a second/);
    expect(() => limiter.take('b')).not.toThrow();
    await clock.advance(400);
    limiter.take('a');
    limiter.take('a');
    expect(() => limiter.take('a')).toThrow();
  });

  it('tells when to come back', () => {
    const limiter = new RateLimiter(2, new FakeClock());
    limiter.take('a');
    limiter.take('a');
    try {
      limiter.take('a');
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ code: 'ThrottlingException', retryAfterSeconds: 0.5 });
    }
  });

  it('has no limit at 0', () => {
    const limiter = new RateLimiter(0, new FakeClock());
    for (let i = 0; i < 1000; i += 1) limiter.take('a');
  });

  it('remembers a bounded number of keys', async () => {
    const limiter = new RateLimiter(1, new FakeClock());
    for (let i = 0; i < 20_000; i += 1) limiter.take(`key-${i}`);
    // The newest are remembered, the oldest begin anew.
    expect(limiter.tryTake('key-19999')).toBe(1);
    expect(limiter.look('key-10000')).toBe(1);
    expect(limiter.look('key-0')).toBe(0);
    expect(limiter.tryTake('key-0')).toBe(0);
  });
});
