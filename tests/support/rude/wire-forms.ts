import { type Fields, FLAG, frame, headOf, MOST_IN_FRAME, PREFACE, reset, TYPE } from '../http2/frames.ts';
import type { Random } from './random.ts';

/** A part of a message that a rude client may cut at its beginning, its end, and in between. */
export interface Piece {
  kind: string;
  bytes: Buffer;
}

/** A request before it has the form of a protocol. */
export interface RequestParts {
  method: string;
  path: string;
  headers: Fields;
  body: readonly Piece[];
}

export function piece(kind: string, text: string): Piece {
  return { kind, bytes: Buffer.from(text, 'latin1') };
}

export function inHttp1({ method, path, headers, body }: RequestParts): Piece[] {
  const chunked = headers.some(([name]) => name === 'transfer-encoding');
  return [
    piece('request line', `${method} ${path} HTTP/1.1\r\n`),
    ...headers.map(([name, value]) => piece(name === 'authorization' ? name : 'header', `${name}: ${value}\r\n`)),
    piece('end of headers', '\r\n'),
    ...(chunked ? inChunks(body) : body),
  ];
}

/** HTTP's own chunks around each piece. */
function inChunks(parts: readonly Piece[]): Piece[] {
  return [
    ...parts.flatMap((part) => [
      piece('chunk head', `${part.bytes.length.toString(16)}\r\n`),
      part,
      piece('end of chunk', '\r\n'),
    ]),
    piece('last chunk', '0\r\n\r\n'),
  ];
}

/** Of one connection alone: HTTP/2 has other words for them. */
const OF_CONNECTION = new Set(['host', 'connection', 'transfer-encoding']);

/** A connection of HTTP/2 with one request, by prior knowledge; with `random`, frames after it that nobody asked for. */
export function inHttp2({ method, path, headers, body }: RequestParts, random?: Random): Piece[] {
  const [, authority = 'x'] = headers.find(([name]) => name === 'host') ?? [];
  const own = headers.filter(([name]) => !OF_CONNECTION.has(name));
  const fields: Fields = [[':method', method], [':scheme', 'http'], [':path', path], [':authority', authority], ...own];
  return [
    { kind: 'preface', bytes: PREFACE },
    ...inParts('settings', frame(TYPE.settings, 0, 0)),
    ...inParts('head', headOf(1, fields, body.length === 0 ? FLAG.end : 0)),
    ...dataFrames(Buffer.concat(body.map(({ bytes }) => bytes))),
    ...(random ? surprise(random) : []),
  ];
}

function dataFrames(body: Buffer): Piece[] {
  const frames: Piece[] = [];
  for (let at = 0; at < body.length; at += MOST_IN_FRAME) {
    const end = at + MOST_IN_FRAME >= body.length ? FLAG.end : 0;
    frames.push(...inParts('data', frame(TYPE.data, end, 1, body.subarray(at, at + MOST_IN_FRAME))));
  }
  return frames;
}

/** A reset, a goodbye, a second request on the same stream, or a frame of any kind. */
function surprise(random: Random): Piece[] {
  const what = random.below(6);
  if (what === 0) return inParts('reset', reset(1, random.below(14)));
  if (what === 1) return inParts('goodbye', frame(TYPE.goaway, 0, 0, random.bytes(8)));
  if (what === 2) return inParts('second head', headOf(1, [], FLAG.end));
  if (what === 3)
    return inParts(
      'any frame',
      frame(random.below(12), random.below(256), random.below(4), random.bytes(random.below(40))),
    );
  return [];
}

/** The head of a frame, and what it holds. */
function inParts(kind: string, bytes: Buffer): Piece[] {
  return [
    { kind: `head of frame of ${kind}`, bytes: bytes.subarray(0, 9) },
    { kind: `frame of ${kind}`, bytes: bytes.subarray(9) },
  ].filter(({ bytes }) => bytes.length > 0);
}
