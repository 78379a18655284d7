import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MEMORY_MS, poolTarget } from './pool-target.ts';

const limits = { max: 8, idleMs: 600_000 };

describe('how many sandboxes stand ready', () => {
  it.each([
    ['none before the first session', [], 0, 0],
    ['one after a session', [0], 0, 1],
    ['one while sessions come seldom', [0, 10_000, 20_000], 20_000, 1],
    ['as many as came at once', [0, 0, 0, 500], 500, 4],
    ['no more than the bound', Array.from({ length: 50 }, () => 0), 0, 8],
    ['the burst of half a minute ago still', [0, 1, 2, 30_000], 30_000, 3],
    ['one again when the burst is over', [0, 1, 2, 90_000], 90_000, 1],
    ['one while it is not idle', [0, 1, 2], 599_999, 1],
    ['none when idle', [0, 1, 2], 600_002, 0],
  ])('%s', (_name, arrivals, now, expected) => {
    expect(poolTarget(arrivals, now, limits)).toBe(expected);
  });

  it('is bounded, none without arrivals, and never less for a busier minute', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(MEMORY_MS - 1), { maxLength: 40 }),
        fc.nat(MEMORY_MS - 1),
        fc.nat(20),
        (times, more, max) => {
          const sorted = times.toSorted((a, b) => a - b);
          const now = MEMORY_MS - 1;
          const target = poolTarget(sorted, now, { max, idleMs: 600_000 });
          expect(target).toBeLessThanOrEqual(max);
          expect(target).toBeGreaterThanOrEqual(Math.min(max, times.length > 0 ? 1 : 0));
          const busier = [...sorted, more].toSorted((a, b) => a - b);
          expect(poolTarget(busier, now, { max, idleMs: 600_000 })).toBeGreaterThanOrEqual(target);
        },
      ),
    );
  });
});
