import { errors } from '@agentplatform/contract';

const HOUR_MS = 3_600_000;
const USUAL_HOURS = 24;
const MOST_HOURS = 10_000;

/** The moment that is so many hours ago as `?hours=` says, a day where it says nothing. Throws ValidationException for no such number. */
export function hoursBack(query: URLSearchParams, now: number): Date {
  const text = query.get('hours');
  const hours = text === null ? USUAL_HOURS : /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (hours < 1 || hours > MOST_HOURS)
    throw errors.invalidField('hours', `must be a whole number from 1 to ${MOST_HOURS}`);
  return new Date(now - hours * HOUR_MS);
}
