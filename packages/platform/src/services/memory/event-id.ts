import { errors } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';

/** Makes the id of an event that happened at `at` (epoch milliseconds). */
export type NewEventId = (at: number) => string;

/** Digits of the moment in an id: ids of one session sort by it as text. */
const DIGITS = 19;

/**
 * Event ids in the wire's form `<milliseconds>#<hex>`. They sort by the event's own time; the hex part begins with the
 * moment of arrival and a counter, so events of one timestamp sort as they came. `random` gives a number below 2^16.
 */
export function createEventIds(clock: Clock, random: () => number): NewEventId {
  let last = 0;
  let counter = 0;
  return (at) => {
    const now = Math.max(last, Math.floor(clock.now()));
    counter = now === last ? counter + 1 : 0;
    // 4096 events in one millisecond: the next ones borrow from the following millisecond.
    last = counter > 0xfff ? now + 1 : now;
    if (counter > 0xfff) counter = 0;
    const arrival = last.toString(16).padStart(11, '0') + counter.toString(16).padStart(3, '0');
    return `${String(at).padStart(DIGITS, '0')}#${arrival}${random().toString(16).padStart(4, '0')}`;
  };
}

/** The last moment of the year 9999: what comes later, databases and ISO 8601 write in other ways. */
const LATEST = 253_402_300_799_999;

/** The event's moment in whole milliseconds; throws a ValidationException naming `field` for one outside 1970 to 9999. */
export function eventTime(timestamp: Date, field: string): number {
  const at = Math.round(timestamp.getTime());
  if (at >= 0 && at <= LATEST) return at;
  throw errors.invalidField(field, 'must be a moment from 1970 to 9999');
}
