import type { Server, Socket } from 'node:net';
import { addressKey } from './address-key.ts';
import type { TrustedAddresses } from './trusted-addresses.ts';

export interface ConnectionCaps {
  /** Connections that one address may have at once; one more is closed as it comes. */
  perAddress: number;
  /** Whom that does not hold for. */
  trusted: Pick<TrustedAddresses, 'has'>;
}

/** Keeps one address from having all the connections of a server. A connection counts until it is closed, whatever became of it meanwhile. */
export function capConnections(server: Server, { perAddress, trusted }: ConnectionCaps): void {
  const open = new Map<string, number>();
  const onConnection = (socket: Socket): void => {
    const { remoteAddress } = socket;
    if (trusted.has(remoteAddress)) return;
    const key = addressKey(remoteAddress);
    const count = open.get(key) ?? 0;
    if (count >= perAddress) {
      socket.destroy();
      return;
    }
    open.set(key, count + 1);
    socket.once('close', () => {
      const left = (open.get(key) ?? 1) - 1;
      if (left === 0) open.delete(key);
      else open.set(key, left);
    });
  };
  // Before the server makes anything for it.
  server.prependListener('connection', onConnection);
}
