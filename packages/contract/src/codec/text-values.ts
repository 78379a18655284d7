import { type MemberDef, type PlaneModel, shapeIn, type TimestampFormat } from '../model.ts';
import { isRecord, type Reader } from './json-reader.ts';
import { formatTimestamp, parseTimestamp } from './timestamps.ts';
import { report, type Walk } from './walk.ts';

/** Reads what labels, query parameters and headers carry: text that stands for a scalar. */
export type TextReader = (text: string, walk: Walk) => unknown;

/** A reader for the shape of a member that travels as text; `json` reads the shape's values once they are JSON values. */
export function textReader(plane: PlaneModel, member: MemberDef, json: Reader): TextReader {
  const shape = shapeIn(plane, member.shape);
  if (member.jsonvalue) return readEncodedJson;
  switch (shape.type) {
    case 'boolean':
      return (text, walk) => json(text === 'true' ? true : text === 'false' ? false : text, walk);
    case 'integer':
    case 'long':
      return (text, walk) => json(/^-?\d{1,19}$/.test(text) ? Number(text) : text, walk);
    case 'float':
    case 'double':
      return (text, walk) =>
        json(/^-?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,3})?$/.test(text) ? Number(text) : text, walk);
    case 'timestamp':
      return (text, walk) => {
        const date = parseTimestamp(text);
        if (date === undefined) report(walk, 'must be a timestamp such as 2026-01-31T12:00:00Z');
        return date;
      };
    default:
      return json;
  }
}

/** A `jsonvalue` in a header: JSON in base64. */
const readEncodedJson: TextReader = (text, walk) => {
  try {
    return JSON.parse(Buffer.from(text, 'base64').toString('utf8'));
  } catch {
    report(walk, 'must be base64 text of JSON');
    return undefined;
  }
};

/** The text of a scalar in a response header. Timestamps are HTTP dates there unless the model says otherwise. */
export function headerText(value: unknown, member: MemberDef, format: TimestampFormat | undefined): string {
  if (member.jsonvalue) return Buffer.from(JSON.stringify(value)).toString('base64');
  if (value instanceof Date) return String(formatTimestamp(value, member.timestampFormat ?? format ?? 'rfc822'));
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (Array.isArray(value)) {
    // The comma within an HTTP date is known to readers and not quoted.
    const part = (item: unknown): string => headerText(item, member, format);
    return value.map((item) => (item instanceof Date ? part(item) : quoteIfNeeded(part(item)))).join(', ');
  }
  if (isRecord(value)) throw new TypeError('A structure cannot travel in a header');
  return String(value);
}

const quoteIfNeeded = (text: string): string => (/[",]/.test(text) ? `"${text.replace(/(["\\])/g, '\\$1')}"` : text);

/** The elements of a list in a header: separated by commas, quoted where they hold one. HTTP dates carry one comma each. */
export function splitHeader(text: string, dates: boolean): string[] {
  if (dates && text.includes(' GMT')) return (text.match(/[^,]+,[^,]+/g) ?? []).map((part) => part.trim());
  const parts: string[] = [];
  let mayClose = true;
  // Walked by hand: a regular expression for quoted parts is slow on hostile text.
  for (let at = 0; at < text.length; ) {
    const comma = text.indexOf(',', at);
    const start = at + (/^[ \t]*/.exec(text.slice(at, at + 64))?.[0].length ?? 0);
    const end = mayClose && text[start] === '"' ? quotedEnd(text, start) : undefined;
    // A quote that is never closed is text; looking again for each further one would take quadratic time.
    if (text[start] === '"' && end === undefined) mayClose = false;
    const stop = end === undefined ? comma : text.indexOf(',', end);
    const part = text.slice(at, stop < 0 ? undefined : stop).trim();
    if (end !== undefined) parts.push(text.slice(start + 1, end - 1).replace(/\\(.)/g, '$1'));
    else if (part !== '') parts.push(part);
    if (stop < 0) break;
    at = stop + 1;
  }
  return parts;
}

/** The place behind the quote that closes the one at `start`, if there is one. */
function quotedEnd(text: string, start: number): number | undefined {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '"') return at + 1;
  }
  return undefined;
}
