import type { Socket } from 'node:net';
import type { Clock } from '../../clock.ts';

/** An HTTP/2 client without TLS begins with these bytes (RFC 9113, 3.4), and no method of HTTP/1 does. */
const PREFACE = Buffer.from('PRI');

/** The names that ALPN has for them. */
export type Protocol = 'h2' | 'http/1.1';

/**
 * Calls `take` once the first bytes of a connection tell its protocol; the connection is paused then, and its bytes are unread. One
 * that says nothing for `limitMs`, ends or breaks is closed.
 */
export function onFirstBytes(socket: Socket, limitMs: number, clock: Clock, take: (protocol: Protocol) => void): void {
  let first: Buffer = Buffer.alloc(0);
  const settle = (): void => {
    cancel();
    socket.off('data', onData).off('end', drop).off('error', drop).off('close', settle);
  };
  const drop = (): void => {
    settle();
    socket.on('error', () => {}).destroy();
  };
  const onData = (part: Buffer): void => {
    first = first.length === 0 ? part : Buffer.concat([first, part]);
    const isHttp2 = PREFACE.equals(first.subarray(0, PREFACE.length));
    if (first.length < PREFACE.length && PREFACE.subarray(0, first.length).equals(first)) return;
    settle();
    socket.pause();
    socket.unshift(first);
    take(isHttp2 ? 'h2' : 'http/1.1');
  };
  const cancel = clock.after(limitMs, drop);
  socket.on('data', onData).once('end', drop).once('error', drop).once('close', settle);
}
