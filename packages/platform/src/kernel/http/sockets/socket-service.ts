import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { OAuthPrincipal, Principal } from '../../auth/principal.ts';

/** WebSockets that a service takes. */
export interface SocketService {
  /** What a request to upgrade asks for; undefined when its path is not one of this service. Throws the wire's error when it cannot be read. */
  read(req: IncomingMessage): SocketRequest | undefined;
}

/** ARNs that a request is about, the first before all. */
export type Resources = readonly [string, ...string[]];

/** A request to open a WebSocket, as far as it can be read before anybody has said who sent it. */
export interface SocketRequest {
  /** The operation that its caller must be allowed, as the model names it. */
  operation: string;
  /** The headers to verify a signature with, names and values in turn. */
  headersToVerify: string[];
  /** What it is about: each must be allowed by itself, and the first goes into the audit trail. Without an account: for the bearer of a token. */
  resources(accountId?: string): Resources;
  /** Who bears the token that stands in place of a signature; absent without one. Rejects with 401 or 403. */
  bearer?: ((resources: Resources, signal: AbortSignal) => Promise<OAuthPrincipal>) | undefined;
  /** Opens it for a caller who is known, counted and allowed. Rejects with the wire's error as long as nothing was answered. */
  open(opening: SocketOpening): Promise<void>;
}

/** A WebSocket that may be opened. */
export interface SocketOpening {
  req: IncomingMessage;
  socket: Duplex;
  /** What the client has sent behind its request. */
  head: Buffer;
  /** Of the handshake (`acceptUpgrade`). */
  key: string;
  requestId: string;
  principal: Principal;
  /** What the caller was allowed. */
  resources: Resources;
  /** Lower-case names of the headers that a signature covers; absent without one, and of a presigned URL. */
  signedHeaders: ReadonlySet<string> | undefined;
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
