import type { Server } from 'node:http';
import type { Server as SecureServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ConnectionCaps, capConnections } from '../connection-caps.ts';
import { onFirstBytes } from './first-bytes.ts';
import { Http2Sessions, type Http2SessionsDeps } from './sessions.ts';

export interface ServeHttp2Deps extends Omit<Http2SessionsDeps, 'serve'> {
  /** A stream counts as one connection more of its address. */
  caps: ConnectionCaps;
}

/** What a server of HTTP/1.1 does not know of when it closes. */
export interface Http2Side {
  /** Takes no new request, and ends what has none under way. */
  close(): void;
  /** Cuts all that is under way. */
  destroy(): void;
}

/**
 * Serves HTTP/2 on the port of a server of HTTP/1.1, through the same handlers: over TLS to clients that agree on `h2`, otherwise to those that
 * begin with its preface. A connection of HTTP/1.1 goes to the server's own listener with the first bytes that come.
 */
export function serveHttp2(server: Server | SecureServer, { caps, ...deps }: ServeHttp2Deps): Http2Side {
  const secure = 'setSecureContext' in server;
  const event = secure ? 'secureConnection' : 'connection';
  const own = server.listeners(event);
  const serveHttp1 = (connection: Duplex): void => {
    for (const listener of own) listener.call(server, connection);
  };
  const sessions = new Http2Sessions({
    ...deps,
    serve(connection) {
      count(connection);
      if (!connection.destroyed) serveHttp1(connection);
    },
  });
  const silent = new Set<Socket>();
  const choose = (socket: Socket): void => {
    if (socket.destroyed) return;
    silent.add(socket);
    socket.once('close', () => silent.delete(socket));
    onFirstBytes(socket, deps.headMs, deps.clock, (protocol) => {
      silent.delete(socket);
      if (protocol === 'h2') return sessions.accept(socket);
      serveHttp1(socket);
      socket.resume();
    });
  };
  server.removeAllListeners(event);
  server.on(event, (socket) => {
    if (!secure) choose(socket);
    else if ('alpnProtocol' in socket && socket.alpnProtocol === 'h2') sessions.accept(socket);
    else serveHttp1(socket);
  });
  const count = capConnections(server, caps);
  return {
    close() {
      for (const socket of silent) socket.destroy();
      sessions.close();
    },
    destroy: () => sessions.destroy(),
  };
}
