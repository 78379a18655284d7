import { WebSocket } from 'ws';
import { closeReason } from './frames.ts';

/** Ends a connection with code and reason, by force when the other side does not answer within `graceMs`. */
export function closeSocket(socket: WebSocket, code: number, reason: string, graceMs = 5000): void {
  if (socket.readyState === WebSocket.CLOSED) return;
  socket.close(code, closeReason(reason));
  const timer = setTimeout(() => socket.terminate(), graceMs);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
}
