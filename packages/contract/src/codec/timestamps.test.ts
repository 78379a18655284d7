import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatTimestamp, parseTimestamp } from './timestamps.ts';

const dates = fc.date({ min: new Date('0001-01-01'), max: new Date('9999-12-31'), noInvalidDate: true });

describe('timestamps', () => {
  it('come back as they went, to the millisecond, HTTP dates to the second', () => {
    fc.assert(
      fc.property(dates, (date) => {
        expect(parseTimestamp(formatTimestamp(date, 'iso8601'))).toEqual(date);
        expect(parseTimestamp(formatTimestamp(date, 'unixTimestamp'))).toEqual(date);
        const seconds = new Date(Math.floor(date.getTime() / 1000) * 1000);
        const expected = date.getUTCFullYear() < 100 ? undefined : seconds;
        expect(parseTimestamp(formatTimestamp(date, 'rfc822'))).toEqual(expected);
      }),
    );
  });

  it.each([
    ['2026-01-31T12:00:00Z', 1769860800000],
    ['2026-01-31T13:00:00+01:00', 1769860800000],
    ['2026-01-31T12:00:00.5Z', 1769860800500],
    ['2024-02-29T00:00:00Z', 1709164800000],
    ['1769860800', 1769860800000],
    [1769860800.25, 1769860800250],
    [-1.5, -1500],
    ['Sat, 31 Jan 2026 12:00:00 GMT', 1769860800000],
  ])('read %j', (text, ms) => expect(parseTimestamp(text)?.getTime()).toBe(ms));

  it.each([
    '',
    'now',
    '2026-01-31',
    '2026-01-31 12:00:00Z',
    '2026-01-31T12:00:00',
    '2026-02-31T12:00:00Z',
    '2025-02-29T12:00:00Z',
    '2026-13-01T12:00:00Z',
    '2026-01-31T24:00:00Z',
    '2026-01-31T12:60:00Z',
    'Tue, 31 Feb 2026 12:00:00 GMT',
    'Mon, 31 Jan 2026 12:00:00 GMT',
    '1e9',
    '99999999999999',
    Number.NaN,
    Number.POSITIVE_INFINITY,
    1e300,
    null,
    true,
    {},
    [1],
  ])('refuse %j', (value) => expect(parseTimestamp(value)).toBeUndefined());

  it('refuse anything without throwing', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        const date = parseTimestamp(value);
        return date === undefined || !Number.isNaN(date.getTime());
      }),
    );
  });

  it('are not made of an invalid Date', () => {
    expect(() => formatTimestamp(new Date(Number.NaN), 'iso8601')).toThrow(RangeError);
  });
});
