import type { WebSocket } from 'ws';
import type { Clock } from '../../clock.ts';

/**
 * Pings a peer and ends its connection when nothing at all comes back within a period: a half-open socket says nothing else.
 * One whose reading is paused cannot answer and is left alone. Returns the function that stops it.
 */
export function keepAlive(socket: WebSocket, periodMs: number, clock: Clock): () => void {
  let heard = true;
  const note = (): void => {
    heard = true;
  };
  socket.on('pong', note).on('ping', note).on('message', note);
  let cancel: () => void;
  const beat = (): void => {
    if (!heard && !socket.isPaused) {
      socket.terminate();
      return;
    }
    heard = false;
    if (socket.readyState === socket.OPEN) socket.ping();
    cancel = clock.after(periodMs, beat);
  };
  cancel = clock.after(periodMs, beat);
  return () => cancel();
}
