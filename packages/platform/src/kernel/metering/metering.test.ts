import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_PRICES, dollarsOf, nanoDollars, priceOf } from './index.ts';
import { type Billed, billUpTo } from './session-seconds.ts';

const MIB = 1024 * 1024;
const START = Date.UTC(2026, 10, 27, 12);
const fresh = (startedAt = START): Billed => ({ startedAt, seconds: 0, cpuMicros: 0, memoryHighWaterBytes: 0 });

interface Read {
  /** Seconds after the start. */
  at: number;
  cpu: number;
  mib: number;
  final?: boolean;
}

/** What these readings come to in all. */
function bill(readings: readonly Read[], startedAt = START) {
  let billed = fresh(startedAt);
  const days = new Map<string, { kibSeconds: number; cpuMicros: number }>();
  for (const { at, cpu, mib, final = false } of readings) {
    const step = billUpTo(billed, {
      ...{ at: startedAt + at * 1000, cpuSeconds: cpu, memoryHighWaterBytes: mib * MIB, final },
    });
    billed = step.billed;
    for (const { day, memoryKibSeconds, cpuMicros } of step.use) {
      const known = days.get(day) ?? { kibSeconds: 0, cpuMicros: 0 };
      days.set(day, { kibSeconds: known.kibSeconds + memoryKibSeconds, cpuMicros: known.cpuMicros + cpuMicros });
    }
  }
  const sum = (of: 'kibSeconds' | 'cpuMicros') => [...days.values()].reduce((total, day) => total + day[of], 0);
  const [kibSeconds, cpuMicros] = [sum('kibSeconds'), sum('cpuMicros')];
  const nano =
    priceOf('memory-kib-seconds', BigInt(kibSeconds), DEFAULT_PRICES) +
    priceOf('cpu-microseconds', BigInt(cpuMicros), DEFAULT_PRICES);
  return { days: Object.fromEntries(days), kibSeconds, cpuMicros, dollars: dollarsOf(nano), seconds: billed.seconds };
}

describe('a session by hand', () => {
  it.each([
    // 1 GB for an hour is 0.00945; an hour of one processor is 0.0895.
    ['an hour of 1 GB that only waits', [{ at: 3600, cpu: 0, mib: 1024, final: true }], '0.009450000'],
    ['an hour of 1 GB and one busy processor', [{ at: 3600, cpu: 3600, mib: 1024, final: true }], '0.098950000'],
    // 128/1024 × 0.00945 = 0.00118125
    ['an hour of 20 MB is billed as one of 128', [{ at: 3600, cpu: 0, mib: 20, final: true }], '0.001181250'],
    // 60 s × 0.25 GB × 0.00945 / 3600 = 0.000039375; 18 s × 0.0895 / 3600 = 0.0004475
    ['a minute of 256 MB and 18 s of work', [{ at: 60, cpu: 18, mib: 256, final: true }], '0.000486875'],
    // 8 h of 2 GB: 0.1512; 30 min of work: 0.04475
    ['eight hours of 2 GB, half an hour of work', [{ at: 28_800, cpu: 1800, mib: 2048, final: true }], '0.195950000'],
    // A begun second at the end is a whole one: 1 s × 0.125 GB × 0.00945 / 3600 = 0.000000328125
    ['a tenth of a second', [{ at: 0.1, cpu: 0, mib: 0, final: true }], '0.000000328'],
    // 100 s at 1 GB, then the mark stays at 1 GB though less is used: 200 s × 1 GB
    [
      'a mark that stays until the end',
      [
        { at: 100, cpu: 0, mib: 1024 },
        { at: 200, cpu: 0, mib: 512, final: true },
      ],
      '0.000525000',
    ],
    // 100 s × 0.5 GB + 100 s × 1 GB = 150 GB-s
    [
      'a mark that rises',
      [
        { at: 100, cpu: 0, mib: 512 },
        { at: 200, cpu: 0, mib: 1024, final: true },
      ],
      '0.000393750',
    ],
    ['nothing yet', [{ at: 0.9, cpu: 0, mib: 500 }], '0.000000000'],
    // 14 days of 8 GB and two busy processors: 336 h × (8 × 0.00945 + 2 × 0.0895)
    [
      'the longest session of the largest size',
      [{ at: 1_209_600, cpu: 2_419_200, mib: 8192, final: true }],
      '85.545600000',
    ],
  ])('%s', (_, readings: Read[], dollars) => {
    expect(bill(readings).dollars).toBe(dollars);
  });

  it('goes over midnight by the day on which each second begins', () => {
    const startedAt = Date.UTC(2026, 10, 27, 23, 59, 50, 500);
    const { days } = bill([{ at: 20, cpu: 2, mib: 128, final: true }], startedAt);
    expect(days).toEqual({
      '2026-11-27': { kibSeconds: 10 * 131_072, cpuMicros: 0 },
      '2026-11-28': { kibSeconds: 10 * 131_072, cpuMicros: 2_000_000 },
    });
  });
});

describe('a session however it is read', () => {
  const reading = fc.record({
    at: fc.integer({ min: 0, max: 400_000 }).map((ms) => ms / 1000),
    cpu: fc.integer({ min: 0, max: 1_000_000 }).map((micros) => micros / 1e6),
    mib: fc.integer({ min: 1, max: 2048 }),
  });
  const property = (check: (readings: Read[]) => void): void =>
    fc.assert(fc.property(fc.array(reading, { minLength: 1, maxLength: 30 }), check), { seed: 21, numRuns: 300 });

  it('has no second twice and leaves none out, whatever comes again or too late', () => {
    property((readings) => {
      const last = Math.max(...readings.map(({ at }) => at));
      const once = bill(readings);
      expect(once.seconds).toBe(Math.floor(last));
      expect(bill([...readings, ...readings])).toEqual(once);
      expect(once.cpuMicros).toBe(Math.max(...readings.map(({ cpu }) => Math.round(cpu * 1e6))));
    });
  });

  it('costs no less than the least memory and no more than its highest mark throughout', () => {
    property((readings) => {
      const { kibSeconds, seconds } = bill(readings);
      const highest = Math.max(128, ...readings.map(({ mib }) => mib));
      expect(kibSeconds).toBeGreaterThanOrEqual(seconds * 128 * 1024);
      expect(kibSeconds).toBeLessThanOrEqual(seconds * highest * 1024);
    });
  });

  it('of one mark costs the same however often it is read', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5000 }),
        fc.array(fc.integer({ min: 1, max: 5000 }), { maxLength: 20 }),
        (end, cuts) => {
          const often = [...cuts.filter((at) => at < end).sort((a, b) => a - b), end].map((at) => ({
            at,
            cpu: at / 2,
            mib: 300,
          }));
          expect(bill(often)).toMatchObject({ kibSeconds: end * 300 * 1024, cpuMicros: end * 500_000 });
        },
      ),
      { seed: 21 },
    );
  });
});

describe('amounts', () => {
  it('are read and written in whole nano-dollars', () => {
    expect(nanoDollars('0.00945')).toBe(9_450_000n);
    expect(nanoDollars('12')).toBe(12_000_000_000n);
    expect(dollarsOf(1n)).toBe('0.000000001');
    expect(dollarsOf(85_545_600_000n)).toBe('85.545600000');
    for (const wrong of ['', '-1', '1e3', '.5', '1.', '0.0000000001', 'NaN', ' 1', '9999999999'])
      expect(() => nanoDollars(wrong), wrong).toThrow(RangeError);
  });

  it('are rounded once, half of one up, beyond what a number of JSON holds', () => {
    const prices = { ...DEFAULT_PRICES, 'gateway-calls': '0.000000001' };
    expect(priceOf('gateway-calls', 499n, prices)).toBe(0n);
    expect(priceOf('gateway-calls', 500n, prices)).toBe(1n);
    expect(priceOf('input-tokens', 10n ** 30n, { ...DEFAULT_PRICES, 'input-tokens': '3' })).toBe(3n * 10n ** 33n);
  });
});
