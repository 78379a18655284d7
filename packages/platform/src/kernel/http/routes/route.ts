import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest, HTTPMethods } from 'fastify';
import type { AuthenticatedBody, IamPrincipal } from '../../auth/index.ts';
import type { Asking } from '../stages.ts';

/** How those who ask prove who they are: a signature for that service of AWS, or an access key as user and password (HTTP Basic). */
export type Credentials = { kind: 'signature'; service: string } | { kind: 'access-key' };

/** What is known of a request that anybody may make. */
export interface OpenCall {
  requestId: string;
  request: FastifyRequest;
  reply: FastifyReply;
  /** Names from the path, decoded. */
  params: Readonly<Record<string, string>>;
  query: URLSearchParams;
}

/** What is known of a request once its sender is. */
export interface KnownCall extends OpenCall {
  principal: IamPrincipal;
  accountId: string;
  /** The verified body; empty without one, and where the route streams it. */
  body: Buffer;
  /** How a body that is streamed hangs together with the signature; absent without one. */
  signedBody: AuthenticatedBody | undefined;
  /** Throws AccessDeniedException unless the caller may do `action` (`service:Action`) on the resource; kept in the audit trail. */
  require(action: string, resource: string): void;
  /** Takes memory for so much more of a body that is streamed and read whole, until it is answered. Throws 429 or 503 where there is none. */
  hold(bytes: number): void;
  /** Runs what decides by another policy than the caller's, such as the trust policy of a role, and keeps its outcome in the audit trail. */
  decide<Result>(asking: Asking, decide: () => Result): Result;
}

/** What a request asks for, and how it is answered once it may. */
export interface Asked {
  /**
   * What the caller must be allowed; all of it. `known`: whoever is known may. `later`: `answer` says so as it goes, by `require` or
   * `decide`; a success without either is not sent.
   */
  rights: Asking | readonly Asking[] | 'known' | 'later';
  /** Gives the body of the answer, the reply if it was sent, or nothing (204). */
  answer(): unknown;
}

interface Path {
  method: HTTPMethods | HTTPMethods[];
  /** Where it is served, in the words of Fastify. */
  url: string;
  /** Takes only requests that say they are signed for this service of AWS, and goes before whatever else is served there. */
  onlySignedFor?: string;
}

/** A route for callers who prove who they are. */
export interface KnownRoute extends Path {
  credentials: Credentials;
  /** Largest body in bytes, which is read and verified whole; `streamed` leaves it to the handler. 64 KiB when absent. */
  body?: number | 'streamed';
  /** What it asks for (`service:Action`), where that is known before its body: who may do it nowhere has no business sending one. */
  action?: string;
  /** Stores something: refused while the disk has no room (503), before its body is read. */
  stores?: true;
  /** Reads the request of a known caller. Nothing is done before its rights were asked. */
  ask(call: KnownCall): Asked | Promise<Asked>;
}

/** A route that serves without credentials. */
export interface OpenRoute extends Path {
  /** Whom; others are asked for `others`, or refused. */
  open: 'everybody' | ((request: IncomingMessage) => boolean);
  /** Why nothing has to be proven, or what proves it instead. */
  because: string;
  others?: { credentials: Credentials; rights: Asking };
  /** Is served however many requests of its address were refused. */
  unlimited?: true;
  answer(call: OpenCall): unknown;
}

export type Route = KnownRoute | OpenRoute;

/** Who reaches a route: everybody, by the platform's port, or what runs in sandboxes, by the listener of their own. */
export type Listener = 'everybody' | 'sandboxes';

/** The endpoints of one product that are no operations of the contract. */
export interface RouteSet {
  /** Names it in metrics, and in the audit trail where it is not known what was asked for. */
  name: string;
  /** Everybody's alone when absent. */
  listeners?: readonly Listener[];
  routes: readonly Route[];
  /** Its requests make no spans: they bring spans themselves, and each would make another. */
  untraced?: true;
  /** Headers of each of its answers. */
  headers?(call: OpenCall): Record<string, string>;
  /** Answers what was thrown in the words of its protocol; what it leaves is answered as the wire does. */
  writeError?(error: unknown, call: OpenCall): FastifyReply | undefined;
}

/** The signature that the platform's own API is asked with. */
export const SIGNED: Credentials = { kind: 'signature', service: 'bedrock-agentcore' };
