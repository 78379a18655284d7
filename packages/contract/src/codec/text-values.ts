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
  if (Array.isArray(value)) throw new TypeError('A list cannot travel in a header');
  if (isRecord(value)) throw new TypeError('A structure cannot travel in a header');
  return String(value);
}
