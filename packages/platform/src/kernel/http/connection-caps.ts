import type { Server } from 'node:net';
import { addressKey } from './address-key.ts';
import type { TrustedAddresses } from './trusted-addresses.ts';

export interface ConnectionCaps {
  /** Connections that one address may have at once; one more is closed as it comes. */
  perAddress: number;
  /** Whom that does not hold for. */
  trusted: Pick<TrustedAddresses, 'has'>;
}

/** What counts as one: a socket, or a stream of HTTP/2. */
export interface CountedConnection {
  readonly remoteAddress?: string | undefined;
  destroy(): void;
  once(event: 'close', run: () => void): unknown;
}

/** Counts a connection until it is closed, and destroys it when its address has too many. */
export type CountConnection = (connection: CountedConnection) => void;

/** Keeps one address from having all the connections of a server. Gives what counts connections that do not come as its sockets. */
export function capConnections(server: Server, { perAddress, trusted }: ConnectionCaps): CountConnection {
  const open = new Map<string, number>();
  const count: CountConnection = (socket) => {
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
  server.prependListener('connection', count);
  return count;
}
