import { WebSocket } from 'ws';

/** Above this many bytes waiting for one side the other is not read; below the second it is read again. */
const HIGH_WATER_BYTES = 1024 * 1024;
const LOW_WATER_BYTES = 256 * 1024;

/** Close codes that may be sent (RFC 6455, 7.4); the others only stand for what happened. */
export function sendableCode(code: number): number | undefined {
  return (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999)
    ? code
    : undefined;
}

/** At most 123 bytes of UTF-8, whole letters: what fits into a close frame. */
export function closeReason(text: string): string {
  let reason = text;
  while (Buffer.byteLength(reason) > 123) reason = reason.slice(0, -1);
  return reason.toWellFormed();
}

/** Hands messages of `from` to `to`, and reads no more of them than `to` takes. */
export function pump(from: WebSocket, to: WebSocket): void {
  const resume = (): void => {
    if (from.isPaused && to.bufferedAmount <= LOW_WATER_BYTES) from.resume();
  };
  from.on('message', (data, binary) => {
    if (to.readyState !== WebSocket.OPEN) return;
    to.send(data as Buffer, { binary }, resume);
    if (to.bufferedAmount > HIGH_WATER_BYTES) from.pause();
  });
  // What is left of it could never be sent; without reading, its close would not be noticed either.
  to.once('close', () => {
    if (from.isPaused) from.resume();
  });
}

/** Ends a connection with code and reason, by force when the other side does not answer within `graceMs`. */
export function closeSocket(socket: WebSocket, code: number | undefined, reason: string, graceMs = 5000): void {
  if (socket.readyState === WebSocket.CLOSED) return;
  if (code === undefined) socket.close();
  else socket.close(code, closeReason(reason));
  const timer = setTimeout(() => socket.terminate(), graceMs);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
}
