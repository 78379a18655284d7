import { type ShapeDef, shapeIn } from '../model.ts';
import type { StreamingBlob } from '../wire-types.ts';
import { holdsTooMuch, maxJsonValues } from './json-values.ts';
import type { PlaneCodec } from './planes.ts';
import { reportAt, type Walk } from './walk.ts';
import type { WireRequest } from './wire-request.ts';

type Body = WireRequest['body'];

/** Compiles what makes the first members of an input from the body: all JSON members, the payload member, or none. */
export function bodyReader(codec: PlaneCodec, input: string): (body: Body, walk: Walk) => Record<string, unknown> {
  const shape = shapeIn(codec.model, input);
  if (shape.payload !== undefined) return payloadReader(codec, shape, shape.payload);
  const unbound = Object.values(shape.members ?? {}).some((member) => member.location === undefined);
  if (!unbound) return () => ({});
  const read = codec.reader(input);
  return (body, walk) => (read(parseJson(wholeBody(body), walk) ?? {}, walk) ?? {}) as Record<string, unknown>;
}

function payloadReader(codec: PlaneCodec, shape: ShapeDef, payload: string) {
  const target = shape.members?.[payload]?.shape ?? '';
  const { type } = shapeIn(codec.model, target);
  if (type === 'blob') return (body: Body): Record<string, unknown> => ({ [payload]: asStream(body) });
  const read = codec.reader(target);
  return (body: Body, walk: Walk): Record<string, unknown> => {
    const bytes = wholeBody(body);
    const content = type === 'string' ? decodeUtf8(bytes, walk) : parseJson(bytes, walk);
    if (content === undefined) return {};
    walk.path.push(payload);
    const value = read(content, walk);
    walk.path.pop();
    return value === undefined ? {} : { [payload]: value };
  };
}

/** The bytes of a body that was collected; a stream here is a mistake of the calling code, not of the client. */
function wholeBody(body: Body): Uint8Array | undefined {
  if (body === undefined || body instanceof Uint8Array) return body;
  throw new TypeError('The body of this operation has to be collected before it is decoded');
}

/** A body as what streams: its bytes as they come. */
export function asStream(body: Body): StreamingBlob {
  if (body !== undefined && !(body instanceof Uint8Array)) return body;
  return (async function* () {
    if (body !== undefined && body.byteLength > 0) yield body;
  })();
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function decodeUtf8(bytes: Uint8Array | undefined, walk: Walk): string | undefined {
  if (bytes === undefined || bytes.byteLength === 0) return undefined;
  try {
    return utf8.decode(bytes);
  } catch {
    reportAt(walk, 'body', 'is not UTF-8 text');
    return undefined;
  }
}

/** The JSON value of a body; undefined when it is empty. A body that is not JSON is reported as the field `body`. */
function parseJson(bytes: Uint8Array | undefined, walk: Walk): unknown {
  if (bytes !== undefined && holdsTooMuch(bytes)) {
    reportAt(walk, 'body', `must hold at most ${maxJsonValues} values`);
    return undefined;
  }
  const text = decodeUtf8(bytes, walk);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    // The engine's message quotes the text around the mistake, which may be a secret: only the place is told.
    const place = /at position \d+(?: \(line \d+ column \d+\))?/.exec(String(error))?.[0];
    reportAt(walk, 'body', place === undefined ? 'is not JSON' : `is not JSON: it goes wrong ${place}`);
    return undefined;
  }
}
