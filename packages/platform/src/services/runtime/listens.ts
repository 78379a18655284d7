import { connect } from 'node:net';

const PATIENCE_MS = 500;
/** A process that ends closes its connections one by one, and its server socket may be the last. */
const ENDING_MS = 50;
const ATTEMPTS = 3;

/** Whether somebody takes connections at that address and goes on to. Never rejects. */
export async function listens(host: string, port: number): Promise<boolean> {
  for (let attempt = 1; ; attempt += 1) {
    const seen = await look(host, port);
    // One who closes at once without having been asked anything may be ending; the next look will tell.
    if (seen !== 'closed') return seen === 'open';
    if (attempt === ATTEMPTS) return true;
  }
}

function look(host: string, port: number): Promise<'open' | 'closed' | 'refused'> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    let connected = false;
    // A server that is too busy to take one more is there all the same.
    let timer = setTimeout(() => settle('open'), PATIENCE_MS);
    const settle = (seen: 'open' | 'closed' | 'refused'): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(seen);
    };
    socket.once('connect', () => {
      connected = true;
      clearTimeout(timer);
      timer = setTimeout(() => settle('open'), ENDING_MS);
    });
    socket.once('end', () => settle('closed'));
    socket.once('error', () => settle(connected ? 'closed' : 'refused'));
    socket.resume();
  });
}
