import type { IncomingHttpHeaders } from 'node:http';
import type { Inputs, OperationName, Outputs } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { OAuthPrincipal, Principal } from './auth/index.ts';
import type { Span } from './telemetry/index.ts';

/** What an operation's handler knows of the request around its input. */
export interface RequestContext {
  requestId: string;
  principal: Principal;
  accountId: string;
  region: string;
  headers: IncomingHttpHeaders;
  /** Where the caller reached the platform, such as `http://127.0.0.1:8080`, as his own request says. */
  origin: string;
  /** The address that the request came from. */
  sourceIp: string | undefined;
  /** Lower-case names of the headers that the caller's signature covers; absent without one, and where another server has verified it. */
  signedHeaders?: ReadonlySet<string> | undefined;
  /** Aborted when the client goes away or the server stops. */
  signal: AbortSignal;
  /** What the signal tells, for the hot path: calls `run` when the client goes away; gives the function that calls that off. */
  onGone(run: () => void): () => void;
  /** Of the request; what a handler has others do becomes a part of it (`child`). */
  span: Span;
  log: Logger;
  /** Rejects with AccessDeniedException unless the caller may do `action` (e.g. `iam:PassRole`) on `resource`, beside the operation itself. */
  require(action: string, resource: string): Promise<void>;
  /** Takes memory for so much more of a body that came as a stream and is read whole, until the handler is done. Throws 429 or 503 where there is none. */
  holdBody(bytes: number): void;
}

/** In whose name a service does something: his policies must allow it. Every request is made by one. */
export type Caller = Pick<RequestContext, 'accountId' | 'require'>;

/** The platform by itself, for what somebody with the right to it has set going before: nobody's policies are asked. */
export const ofThePlatform = (accountId: string): Caller => ({ accountId, require: async () => undefined });

type Resources = string | readonly [string, ...string[]];

/** Condition keys of one request and their values. */
export type ConditionKeys = Record<string, string | string[]>;

/** One served operation. Input is decoded and valid, the caller authenticated; `handle` runs only when `resource` is allowed. */
export interface OperationHandler<K extends OperationName> {
  /**
   * ARN (or ARN pattern with `*`) that the caller must be allowed to use; `action` is `bedrock-agentcore:<operation>`, or what `actionOf` says. Several: each must be
   * allowed by itself, and the first is what the request is about.
   */
  resource(input: Inputs[K], ctx: RequestContext): Resources | Promise<Resources>;
  /** What the audit trail calls the first resource, where that is not its ARN. */
  audited?(resource: string): string;
  /** Condition keys beyond the common ones, e.g. `bedrock-agentcore:actorId`. Several sets: each must be allowed by itself. */
  conditions?(
    input: Inputs[K],
    ctx: RequestContext,
  ): ConditionKeys | ConditionKeys[] | Promise<ConditionKeys | ConditionKeys[]>;
  /** The handler itself sees to it that a repeated clientToken has one effect and one answer. */
  ownIdempotency?: true;
  /** Accepts a bearer token in place of a signature, by the resource's own authorizer; rejects with 401 or 403. Absent: signed requests only. */
  bearer?(input: Inputs[K], token: string, headers: IncomingHttpHeaders): Promise<OAuthPrincipal>;
  handle(input: Inputs[K], ctx: RequestContext): Promise<Outputs[K]>;
}

/** The handlers of exactly these operations. */
export type HandlersOf<Names extends OperationName> = { [K in Names]: OperationHandler<K> };

export type OperationHandlers = Partial<HandlersOf<OperationName>>;

/** What every service's `index.ts` returns; `port` is what other services may use of it. */
export interface Service<Names extends OperationName, Port = unknown> {
  operations: HandlersOf<Names>;
  port: Port;
  start(): Promise<void>;
  stop(): Promise<void>;
}
