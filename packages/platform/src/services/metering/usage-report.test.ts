import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  addMetered,
  DEFAULT_PRICES,
  type Metered,
  meteringMigrations,
  type Unit,
} from '../../kernel/metering/index.ts';
import { describeDatabases } from '../../kernel/storage/testing/databases.ts';
import { readPrices } from './settings.ts';
import { groupings, readUsage } from './usage-report.ts';

const ACCOUNT = '123456789012';
const asked = { accountId: ACCOUNT, from: '2026-11-01', to: '2026-11-30', most: 1000 };

describeDatabases('the bill', meteringMigrations, (database) => {
  beforeEach(() => database().exec('TRUNCATE metered'));

  const use = (unit: Unit, quantity: number, over: Partial<Metered> = {}): Metered => ({
    ...{ day: '2026-11-27', accountId: ACCOUNT, piece: 'runtime', resourceArn: 'arn:a', sessionId: 's1', userId: '' },
    ...{ unit, quantity, ...over },
  });
  const read = (over: Partial<Parameters<typeof readUsage>[2]> = {}) =>
    readUsage(database(), DEFAULT_PRICES, { ...asked, by: 'agent', ...over });

  it('is by agent, session, user, day and piece', async () => {
    await addMetered(database(), [
      use('memory-kib-seconds', 1_048_576 * 3600),
      use('cpu-microseconds', 3_600_000_000, { day: '2026-11-28' }),
      use('invocations', 2, { userId: 'jane' }),
      use('invocations', 1, { userId: 'mate', day: '2026-11-28' }),
      use('gateway-calls', 1000, { piece: 'gateway', resourceArn: 'arn:g', sessionId: '', userId: 'mate' }),
      use('gateway-calls', 7, { accountId: '999999999999' }),
      use('gateway-calls', 7, { day: '2026-10-31' }),
    ]);
    const keys = async (by: (typeof groupings)[number]) =>
      (await read({ by })).lines.map(({ key, dollars }) => [key, dollars]);
    expect(await keys('agent')).toEqual([
      ['arn:a', '0.098950000'],
      ['arn:g', '0.005000000'],
    ]);
    expect(await keys('session')).toEqual([
      ['s1', '0.098950000'],
      ['', '0.005000000'],
    ]);
    // What a session used is its first user's.
    expect(await keys('user')).toEqual([
      ['jane', '0.098950000'],
      ['mate', '0.005000000'],
    ]);
    expect(await keys('day')).toEqual([
      ['2026-11-28', '0.089500000'],
      ['2026-11-27', '0.014450000'],
    ]);
    expect(await keys('piece')).toEqual([
      ['runtime', '0.098950000'],
      ['gateway', '0.005000000'],
    ]);
    const { total, more } = await read({ most: 1 });
    expect({ total, more }).toMatchObject({ more: true, total: { dollars: '0.103950000' } });
  });

  it('adds up to the same whatever it is by (seed 21)', async () => {
    const one = fc.record({
      day: fc.integer({ min: 1, max: 30 }).map((day) => `2026-11-${String(day).padStart(2, '0')}`),
      accountId: fc.constant(ACCOUNT),
      piece: fc.constantFrom('runtime', 'browser', 'gateway'),
      resourceArn: fc.constantFrom('', 'arn:a', 'arn:b'),
      sessionId: fc.constantFrom('', 's1', 's2', 's3'),
      userId: fc.constantFrom('', 'jane', 'mate'),
      unit: fc.constantFrom<Unit>('memory-kib-seconds', 'cpu-microseconds', 'gateway-calls', 'invocations'),
      quantity: fc.integer({ min: 0, max: 2 ** 50 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(one, { maxLength: 40 }), async (rows) => {
        await database().exec('TRUNCATE metered');
        // In two parts, as batches come.
        await addMetered(database(), rows.slice(0, rows.length / 2));
        await addMetered(database(), rows.slice(rows.length / 2));
        for (const by of groupings) {
          const { lines, total, more } = await read({ by });
          expect(more).toBe(false);
          for (const unit of Object.keys(total.units) as Unit[]) {
            const counted = rows
              .filter((row) => row.unit === unit)
              .reduce((sum, row) => sum + BigInt(row.quantity), 0n);
            expect(total.units[unit]).toBe(counted.toString());
            expect(lines.reduce((sum, { units }) => sum + BigInt(units[unit] ?? 0), 0n)).toBe(counted);
          }
          // Each line and unit is rounded once: half a nano-dollar at most for each.
          const off = BigInt(total.nanoDollars) - lines.reduce((sum, line) => sum + BigInt(line.nanoDollars), 0n);
          expect(Math.abs(Number(off))).toBeLessThanOrEqual(2 * (lines.length + 1));
        }
      }),
      { seed: 21, numRuns: 15 },
    );
  });
});

describe('prices', () => {
  it('are set by unit, as text or object', () => {
    expect(readPrices('gateway-calls=0.01, input-tokens = 3')).toEqual({
      ...DEFAULT_PRICES,
      ...{ 'gateway-calls': '0.01', 'input-tokens': '3' },
    });
    expect(readPrices({ 'memory-events': 0.5 })).toMatchObject({ 'memory-events': '0.5' });
  });

  it.each(['', 'gateway-calls', 'gateway-calls=-1', 'gateway-calls=1=2', 'nothing=1', 'gateway-calls=1e-3', 7, null])(
    'are refused with a reason: %s',
    (wrong) => {
      expect(() => readPrices(wrong)).toThrow(/^must/);
    },
  );
});
