import type { TimestampFormat } from '../model.ts';

/** RFC 3339 as the wire uses it: a date, `T`, a time with optional fraction, and `Z` or an offset. */
const iso = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/;
const httpDate =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d\d:\d\d:\d\d(?:\.\d{1,3})? GMT$/;

/** The years 0001 to 9999, which every client's date type can hold. */
const earliest = -62135596800000;
const latest = 253402300799999;

function inRange(ms: number): Date | undefined {
  return ms >= earliest && ms <= latest ? new Date(ms) : undefined;
}

function fromIso(text: string): Date | undefined {
  const parts = iso.exec(text);
  if (parts === null) return undefined;
  const [, year, month, day, hour, minute, second] = parts.map(Number);
  // Date.parse turns 31 February into 3 March; a day that the month does not have is refused instead.
  const days = new Date(Date.UTC(2000, month ?? 0, 0));
  days.setUTCFullYear(year ?? 0, month ?? 0, 0);
  if (month === undefined || month < 1 || month > 12 || day === undefined || day < 1 || day > days.getUTCDate())
    return undefined;
  if ((hour ?? 99) > 23 || (minute ?? 99) > 59 || (second ?? 99) > 59) return undefined;
  return inRange(Date.parse(text));
}

function fromHttpDate(text: string): Date | undefined {
  const date = httpDate.test(text) ? inRange(Date.parse(text)) : undefined;
  // The engine takes the year 0099 for 1999, and 31 February for 3 March: the date must say what the text says.
  return date?.toUTCString().slice(0, 25) === text.slice(0, 25) ? date : undefined;
}

/** Seconds since the epoch, with a fraction down to the millisecond. */
function fromSeconds(seconds: number): Date | undefined {
  return Number.isFinite(seconds) ? inRange(Math.round(seconds * 1000)) : undefined;
}

/**
 * The instant that a timestamp on the wire means, or undefined when it means none. Clients disagree on the format
 * (some send ISO text where the model says seconds), so every unambiguous form is understood in every place.
 */
export function parseTimestamp(value: unknown): Date | undefined {
  if (typeof value === 'number') return fromSeconds(value);
  if (typeof value !== 'string') return undefined;
  if (/^-?\d{1,12}(?:\.\d{1,9})?$/.test(value)) return fromSeconds(Number(value));
  return fromIso(value) ?? fromHttpDate(value);
}

/** A date in the wire format that the model demands: a number of seconds, or text. Throws RangeError on an invalid Date. */
export function formatTimestamp(date: Date, format: TimestampFormat): number | string {
  if (Number.isNaN(date.getTime())) throw new RangeError('An invalid Date cannot be sent');
  switch (format) {
    case 'unixTimestamp':
      return date.getTime() / 1000;
    case 'iso8601':
      return date.toISOString().replace('.000Z', 'Z');
    case 'rfc822':
      return date.toUTCString();
  }
}
