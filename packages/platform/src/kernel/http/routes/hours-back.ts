import { errors } from '@agentplatform/contract';

const HOUR_MS = 3_600_000;
const USUAL_HOURS = 24;
const MOST_HOURS = 10_000;

/** The whole number that the query has under that name, `usual` where it says nothing. Throws ValidationException for none from 1 to `most`. */
export function numberIn(
  query: URLSearchParams,
  name: string,
  { usual, most }: { usual: number; most: number },
): number {
  const text = query.get(name);
  const number = text === null ? usual : /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (number < 1 || number > most) throw errors.invalidField(name, `must be a whole number from 1 to ${most}`);
  return number;
}

/** The moment that is so many hours ago as `?hours=` says, a day where it says nothing. Throws ValidationException for no such number. */
export function hoursBack(query: URLSearchParams, now: number): Date {
  return new Date(now - numberIn(query, 'hours', { usual: USUAL_HOURS, most: MOST_HOURS }) * HOUR_MS);
}

/** More rows than a table shows. */
const MOST_ROWS = 1_000;

/** The first rows of what `read` reads with a limit, and whether there are more. */
export async function firstRows<Row>(
  read: (limit: number) => Promise<Row[]>,
): Promise<{ usage: Row[]; more: boolean }> {
  const rows = await read(MOST_ROWS + 1);
  return { usage: rows.slice(0, MOST_ROWS), more: rows.length > MOST_ROWS };
}
