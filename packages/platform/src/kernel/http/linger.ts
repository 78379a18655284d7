import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Clock } from '../clock.ts';

/** How long a connection is kept for a client that has its answer and still sends, and how much of that is read. */
const LIMITS = { idleSeconds: 5, seconds: 30, bytes: 1_000_000_000 };

/**
 * Lets the answer to `req`, the last one of its connection, reach a client that is still sending. Node closes a connection after its
 * last answer; what comes then, or lies unread, makes the system send a reset, and a client that writes meets that before it
 * reads the answer. So the connection lingers instead (RFC 9112, 9.6): our side ends, what still comes is thrown away until the body
 * is over, and a client that goes on for ever, however slowly, is cut off.
 */
export function lingerAfterAnswer(req: IncomingMessage, clock: Clock, limits = LIMITS): void {
  const { socket } = req;
  // By this Node closes a connection once its last answer is out.
  socket.destroySoon = () => {
    const close = (): void => Socket.prototype.destroySoon.call(socket);
    if (req.complete) return close();
    const before = socket.bytesRead;
    let seen = before;
    let idle = 0;
    let all = 0;
    const look = (): void => {
      const { bytesRead } = socket;
      idle = bytesRead === seen ? idle + 1 : 0;
      all += 1;
      seen = bytesRead;
      if (idle === limits.idleSeconds || all === limits.seconds || seen - before > limits.bytes) socket.destroy();
      else cancel = clock.after(1000, look);
    };
    let cancel = clock.after(1000, look);
    socket.once('close', () => cancel()).end();
    req.once('end', close).unpipe();
    req.resume();
  };
}
