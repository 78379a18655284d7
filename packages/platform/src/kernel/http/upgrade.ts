import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { encodeError, requestIdHeader, type ServiceError } from '@agentplatform/contract';

/** Takes over the connection of a request that asks for WebSocket, or refuses it. Never throws. */
export type UpgradeHandler = (req: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** How long a client that was refused has to take its answer and close. */
const LINGER_MS = 5000;

/** Answers a request to upgrade with the wire's error and ends its connection. */
export function refuseUpgrade(socket: Duplex, error: ServiceError | Error, requestId: string): void {
  const { status, headers, body } = encodeError(error);
  const text = typeof body === 'string' ? body : '';
  const lines = [`HTTP/1.1 ${status} ${error.name}`, `${requestIdHeader}: ${requestId}`];
  for (const name in headers) lines.push(`${name}: ${headers[name]}`);
  lines.push(`content-length: ${Buffer.byteLength(text)}`, 'connection: close', '', text);
  if (socket.destroyed) return;
  // Nobody else reads or hears this connection any more: unread bytes would keep it open for ever, and the server from its end.
  const late = setTimeout(() => socket.destroy(), LINGER_MS);
  socket
    .on('error', () => {})
    .once('close', () => clearTimeout(late))
    .resume()
    .end(lines.join('\r\n'));
}
