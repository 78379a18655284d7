import { connect } from 'node:net';

/** How long a network may take to say that nobody is there, in ms. */
const CONNECT_MS = 2000;
/** How long one who took the connection may be about to speak: on a busy machine it has yet to be started. */
const PATIENCE_MS = 20_000;

/** What a server says that speaks first, or undefined when nobody takes the connection or nothing is said. */
export function ask({ host, port }: { host: string; port: number }): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.setTimeout(CONNECT_MS, () => socket.destroy());
    socket.once('connect', () => socket.setTimeout(PATIENCE_MS));
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    // What was said before a reset was said.
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(answer === '' ? undefined : answer));
  });
}
