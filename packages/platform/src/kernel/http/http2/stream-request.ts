import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { type Duplex, duplexPair, pipeline } from 'node:stream';
import { HOP_BY_HOP } from '../../hop-by-hop.ts';

/** Where the client of a stream is. */
export interface Peer {
  remoteAddress: string | undefined;
  encrypted: boolean;
}

/** Longest head of an answer that is passed on, in bytes: what a session of HTTP/2 is sure to carry. */
const MAX_ANSWER_HEAD_BYTES = 32 * 1024;

const { NGHTTP2_INTERNAL_ERROR, NGHTTP2_PROTOCOL_ERROR, NGHTTP2_REFUSED_STREAM } = constants;

/**
 * Serves one stream as a connection of HTTP/1.1 that carries one request: `serve` is handed that connection, and destroys it at once to refuse the stream.
 * So every rule for a request of HTTP/1.1 holds for this one: the limits of its head, its times, how it is cut and how its answer breaks.
 */
export function serveStream(
  stream: ServerHttp2Stream,
  rawHeaders: readonly string[],
  peer: Peer,
  serve: (connection: Duplex & Peer) => void,
): void {
  // What breaks it is told by its end.
  stream.on('error', () => {});
  const head = requestHead(rawHeaders, !stream.endAfterHeaders);
  if (!head) {
    stream.close(NGHTTP2_PROTOCOL_ERROR);
    return;
  }
  const [near, far] = connectionPair();
  const connection = Object.assign(far, peer);
  serve(connection);
  if (connection.destroyed) {
    stream.close(NGHTTP2_REFUSED_STREAM);
    return;
  }
  const exchange = request({
    ...head,
    setHost: false,
    maxHeaderSize: MAX_ANSWER_HEAD_BYTES,
    createConnection: () => near,
  });
  stream.once('close', () => {
    exchange.destroy();
    connection.destroy();
  });
  exchange
    .on('error', () => {})
    .on('continue', () => {
      if (!stream.closed) stream.additionalHeaders({ ':status': 100 });
    })
    .on('response', (answer) => passAnswer(answer, stream))
    // A stream is not over before all of it is read, and nobody else does that any more.
    .once('close', () => {
      stream.unpipe(exchange).resume();
      if (!stream.headersSent) stream.close(NGHTTP2_INTERNAL_ERROR);
    });
  passBody(stream, exchange);
}

/** Both hear their own errors: what ends one is told by the other's end. */
function connectionPair(): [Duplex, Duplex] {
  const pair = duplexPair();
  for (const side of pair) side.on('error', () => {});
  return pair;
}

/** The head as HTTP/1.1 has it (RFC 9113, 8.3.1); undefined for one that names two hosts, or has no method or path that HTTP/1.1 can carry. */
function requestHead(
  rawHeaders: readonly string[],
  hasBody: boolean,
): { method: string; path: string; headers: string[] } | undefined {
  const pseudo = new Map<string, string>();
  const headers: string[] = [];
  const cookies: string[] = [];
  let host: string | undefined;
  let hasLength = false;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = rawHeaders.slice(i, i + 2);
    if (name.startsWith(':')) pseudo.set(name, value);
    else if (name === 'host') host = value;
    else if (name === 'cookie') cookies.push(value);
    else if (name === 'expect' || !HOP_BY_HOP.has(name)) headers.push(name, value);
    if (name === 'content-length') hasLength = true;
  }
  const method = pseudo.get(':method') ?? '';
  const path = pseudo.get(':path') ?? '';
  const authority = pseudo.get(':authority') ?? host;
  if (method === 'CONNECT' || !/^[\x21-\xff]+$/.test(path)) return undefined;
  if (host !== undefined && host !== authority) return undefined;
  if (authority !== undefined) headers.push('host', authority);
  if (cookies.length > 0) headers.push('cookie', cookies.join('; '));
  headers.push('connection', 'close');
  if (hasBody && !hasLength) headers.push('transfer-encoding', 'chunked');
  return { method, path, headers };
}

/** A stream that its client resets ends like one that is whole, if the reset names no error. */
function passBody(stream: ServerHttp2Stream, exchange: ClientRequest): void {
  exchange.flushHeaders();
  if (stream.endAfterHeaders) {
    stream.resume();
    exchange.end();
    return;
  }
  stream.pipe(exchange, { end: false });
  stream.once('end', () => {
    if (stream.closed) exchange.destroy();
    else exchange.end();
  });
}

function passAnswer(answer: IncomingMessage, stream: ServerHttp2Stream): void {
  if (stream.closed || stream.destroyed) return void answer.destroy();
  const headers: OutgoingHttpHeaders = { ':status': answer.statusCode };
  for (const [name, value] of Object.entries(answer.headers)) if (!HOP_BY_HOP.has(name)) headers[name] = value;
  try {
    stream.respond(headers);
  } catch {
    // HTTP/1.1 has answers that HTTP/2 has no words for, such as a status of 600.
    stream.close(NGHTTP2_INTERNAL_ERROR);
    return void answer.destroy();
  }
  pipeline(answer, stream, (error) => {
    // What its client still sends is wanted by nobody.
    if (!error && !stream.readableEnded) stream.close();
  });
}
