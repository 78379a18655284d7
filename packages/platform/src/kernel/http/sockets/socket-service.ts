import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Span } from '../../telemetry/index.ts';
import type { Entered, EntryRequest } from '../entry.ts';

/** WebSockets that a service takes. */
export interface SocketService {
  /** What a request to upgrade asks for; undefined when its path is not one of this service. Throws the wire's error when it cannot be read. */
  read(req: IncomingMessage): SocketRequest | undefined;
}

/** A request to open a WebSocket, as far as it can be read before anybody has said who sent it. */
export interface SocketRequest extends EntryRequest {
  /** Opens it for a caller who is known, counted and allowed. Rejects with the wire's error as long as nothing was answered. */
  open(opening: SocketOpening): Promise<void>;
}

/** A WebSocket that may be opened. */
export interface SocketOpening extends Entered {
  req: IncomingMessage;
  socket: Duplex;
  /** What the client has sent behind its request. */
  head: Buffer;
  /** Of the handshake (`acceptUpgrade`). */
  key: string;
  requestId: string;
  /** Until it is closed. */
  span: Span;
  /** Aborted when the client goes away before it is open. */
  signal: AbortSignal;
  /** Rejects with AccessDeniedException unless the caller may do `action` on `resource`, too. */
  require(action: string, resource: string): Promise<void>;
  /** Says that it is open: it counts until it is closed, and is closed when the server stops. */
  opened(stream: OpenSocket): void;
}

/** What can be ended, and when it has. */
export interface OpenSocket {
  close(code: number, reason: string, graceMs: number): void;
  closed: Promise<unknown>;
}
