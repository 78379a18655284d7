import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { createEventIds, eventTime } from './event-id.ts';

describe('event ids', () => {
  it('sort as text by the time of the event, then by arrival', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ at: fc.nat(5), wait: fc.nat(1) }), { maxLength: 200 }), (steps) => {
        let now = 1_760_000_000_000;
        const clock = { now: () => now, monotonic: () => now, after: () => () => undefined };
        const next = createEventIds(clock, () => 0);
        const made = steps.map(({ at, wait }, arrival) => {
          now += wait;
          return { id: next(at), at, arrival };
        });
        const byId = made.toSorted((a, b) => (a.id < b.id ? -1 : 1));
        expect(byId).toEqual(made.toSorted((a, b) => a.at - b.at || a.arrival - b.arrival));
      }),
    );
  });

  it('stay unique and in order when more come in one millisecond than a counter holds', () => {
    const next = createEventIds(new FakeClock(1_760_000_000_000), () => 0);
    const ids = Array.from({ length: 10_000 }, () => next(1));
    expect(new Set(ids).size).toBe(10_000);
    expect(ids.toSorted()).toEqual(ids);
    expect(ids[0]).toMatch(/^[0-9]+#[a-fA-F0-9]+$/);
  });

  it('refuse a moment before 1970 or after 9999', () => {
    expect(() => eventTime(new Date(253_402_300_800_000), 'x')).toThrow(/x must be/);
    expect(() => eventTime(new Date(Number.NaN), 'x')).toThrow(/x must be/);
    expect(() => eventTime(new Date(-1), 'eventTimestamp')).toThrow(/eventTimestamp must be/);
    expect(eventTime(new Date(0), 'eventTimestamp')).toBe(0);
  });
});
