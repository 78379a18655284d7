import { connect } from 'node:net';

const PATIENCE_MS = 500;

/** Whether somebody takes connections at that address at this moment. Never rejects. */
export function listens(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const settle = (answer: boolean) => (): void => {
      socket.destroy();
      resolve(answer);
    };
    // A server that is too busy to take one more is there all the same.
    socket.setTimeout(PATIENCE_MS, settle(true));
    socket.once('connect', settle(true));
    socket.once('error', settle(false));
  });
}
