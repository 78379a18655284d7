import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { contextFrom, type InvocationContext, runInContext } from './context.ts';

/** One WebSocket of a caller; it is that of the package `ws`, of which these parts are promised. */
export interface AgentSocket {
  /** The subprotocol that was agreed on, or empty. */
  readonly protocol: string;
  /** Bytes that wait to be sent. */
  readonly bufferedAmount: number;
  send(data: string | Uint8Array, done?: (error?: Error) => void): void;
  close(code?: number, reason?: string): void;
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): this;
  on(event: 'close', listener: (code: number, reason: Buffer) => void): this;
  once(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): this;
  once(event: 'close', listener: (code: number, reason: Buffer) => void): this;
}

/** Serves one WebSocket at `/ws`. It may return at once and go on by listeners; if it throws, the socket is closed with 1011. */
export type WebSocketHandler = (socket: AgentSocket, context: InvocationContext) => unknown;

/** Largest message of a caller in bytes, the platform's own limit. */
const MAX_MESSAGE_BYTES = 10 * 1024 * 1024;

/**
 * Serves `/ws` on that server. Resolves with the function that ends every socket with 1001. Rejects when the package `ws` is
 * not installed, which nothing else here needs.
 */
export async function serveWebSockets(
  server: Server,
  handler: WebSocketHandler,
  report: (message: string, error: unknown) => void,
): Promise<() => void> {
  const { WebSocketServer } = await loadWs();
  const sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES, perMessageDeflate: false });
  server.on('upgrade', (request: IncomingMessage, connection: Duplex, head: Buffer) => {
    connection.on('error', () => connection.destroy());
    if (request.url?.split('?')[0] !== '/ws') {
      connection.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
      return;
    }
    sockets.handleUpgrade(request, connection, head, (socket) => {
      const gone = new AbortController();
      socket.once('close', () => gone.abort(new Error('The caller went away.')));
      // What breaks a connection ends it; there is nobody left to tell.
      socket.on('error', () => undefined);
      const context = contextFrom(request.headers, gone.signal);
      void (async () => runInContext(context, () => handler(socket as AgentSocket, context)))().catch(
        (error: unknown) => {
          if (!gone.signal.aborted) report('the WebSocket handler failed:', error);
          socket.close(1011);
        },
      );
    });
  });
  return () => {
    for (const socket of sockets.clients) {
      socket.close(1001);
      const late = setTimeout(() => socket.terminate(), 1000).unref();
      socket.once('close', () => clearTimeout(late));
    }
  };
}

async function loadWs(): Promise<typeof import('ws')> {
  try {
    return await import('ws');
  } catch (error) {
    throw new Error('A WebSocket handler needs the package "ws": npm install ws', { cause: error });
  }
}
