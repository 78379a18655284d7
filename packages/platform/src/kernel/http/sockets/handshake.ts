import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { errors } from '@agentplatform/contract';

/** What a server answers to that key (RFC 6455, 4.2.2). */
export function acceptOf(key: string): string {
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
}

/**
 * The key of a request to open a WebSocket. Throws ValidationException when it is no proper one (RFC 6455, 4.2.1), but for one thing: the
 * vendor's Python SDK hands out a key of its own for its caller to send, whose WebSocket library then sends it behind the key that it made
 * and looks for the answer to.
 */
export function readHandshake({ method, headersDistinct: headers }: IncomingMessage): string {
  const [key = ''] = headers['sec-websocket-key'] ?? [];
  if (method !== 'GET' || !/^[A-Za-z0-9+/]{22}==$/.test(key))
    throw errors.validation('The request to open a WebSocket is not a proper one.');
  const versions = headers['sec-websocket-version'] ?? [''];
  if (versions.some((version) => version !== '13'))
    throw errors.validation('Only version 13 of the WebSocket protocol is spoken.');
  return key;
}

/** Answers 101 with those header lines; false when the client is gone. */
export function acceptUpgrade(socket: Duplex, key: string, lines: readonly string[]): boolean {
  if (socket.destroyed || !socket.writable) return false;
  if (socket instanceof Socket) {
    socket.setTimeout(0);
    socket.setNoDelay(true);
  }
  const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
  socket.write([...head, `Sec-WebSocket-Accept: ${acceptOf(key)}`, ...lines, '', ''].join('\r\n'));
  return true;
}
