import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below what systems give out to whoever asks for any port: 32768 on Linux, 49152 elsewhere. */
const [FROM, TO] = [20_000, 32_000];

/**
 * A port of 127.0.0.1 that is free, for a server that comes back to it. One that the system had given out would be given to another, or be
 * that of somebody's connection, while the server is away.
 */
export async function keptPort(): Promise<number> {
  for (;;) {
    const port = randomInt(FROM, TO);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
