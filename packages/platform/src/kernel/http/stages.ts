import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Inputs, OperationName } from '@agentplatform/contract';
import type { Authenticated, Authenticator, Principal } from '../auth/index.ts';
import type { Clock } from '../clock.ts';
import type { PeerClaims, PeerForwarder } from '../peers/index.ts';
import type { ConditionKeys, OperationHandler, RequestContext } from '../service.ts';
import { NO_TRACER, type Span, type Tracer } from '../telemetry/index.ts';
import { actionOf } from './action-of.ts';
import { type AuditRecord, auditRecord } from './audit-record.ts';
import type { BodyMemory, HeldBody } from './body-memory.ts';
import type { RequestRates } from './request-rates.ts';

/** Throws AccessDeniedException unless `principal` may do `action` on `resource`. */
export type Authorize = (request: {
  principal: Principal;
  action: string;
  resource: string;
  conditions: ConditionKeys;
  sourceIp: string | undefined;
}) => void;

export interface StagesDeps {
  authenticator: Authenticator;
  authorize: Authorize;
  rates: Pick<RequestRates, 'take' | 'refused'>;
  bodies: Pick<BodyMemory, 'of'>;
  audit(record: AuditRecord): void;
  /** Throws while the audit trail takes nothing: what changes anything is not done unrecorded. */
  needRecord(): void;
  /** Knows what another server has handed on; absent where there is no other. */
  forward?: Pick<PeerForwarder, 'sent'> | undefined;
  /** Absent where nothing is traced. */
  tracer?: Tracer | undefined;
  clock: Clock;
}

/** Where a request came from; a call of one service to another names what it is made for. */
export interface Source {
  readonly socket: { readonly remoteAddress?: string | undefined };
  readonly headers: IncomingHttpHeaders;
}

/** One request as the stages know it, whatever it asks for; they fill in who asks and what for. */
export interface Exchange {
  readonly req: Source;
  readonly requestId: string;
  /** Begun with it (`Stages.span`), ended by `Stages.finish`. */
  readonly span: Span;
  principal: Principal | undefined;
  resource: string | undefined;
  /** What another server says that handed it on, as its token shows. */
  forwarded: Pick<PeerClaims, 'sourceIp'> | undefined;
  /** Memory that its body has. */
  held?: HeldBody;
}

/** What is asked of a policy. */
export interface Asking {
  action: string;
  resource: string;
  conditions?: ConditionKeys;
}

/** What a request was refused with; what no client was to see has no code. */
export interface Refusal {
  status: number;
  code: string | undefined;
}

/**
 * What every request goes through, whether it asks for an operation (`Pipeline`), a WebSocket (`SocketPipeline`) or something else
 * (`RoutePipeline`): who asks, how often he may, whether he may, and what of it is kept. The pipelines have the order.
 */
export class Stages {
  readonly #deps: StagesDeps;
  readonly #tracer: Tracer;

  constructor(deps: StagesDeps) {
    this.#deps = deps;
    this.#tracer = deps.tracer ?? NO_TRACER;
  }

  /** The span of a request: of an operation by its name, of a route by that of its set. */
  span(operation: string, { method, headers }: IncomingMessage): Span {
    const span = this.#tracer.request(operation, headers);
    if (span.traced) {
      span.set('http.request.method', method);
      span.set('rpc.method', operation);
    }
    return span;
  }

  /** Does `run` as the work of a request, what it waits for the database noted. */
  during<Result>({ span }: Exchange, run: () => Promise<Result>): Promise<Result> {
    return span.traced ? this.#tracer.during(span, run) : run();
  }

  /** The request is answered, with that status; its refusal or failure has a code. */
  finish(exchange: Exchange, status: number, errorCode: string | undefined): void {
    this.release(exchange);
    const { span, requestId, resource } = exchange;
    if (!span.traced) return;
    span.set('http.response.status_code', status);
    span.set('aws.request_id', requestId);
    span.set('cloud.resource_id', resource);
    // A caller's mistake is none of the server's (OpenTelemetry, HTTP spans).
    if (status >= 500) span.fail(errorCode);
    else span.set('error.type', errorCode);
    span.end();
  }

  /** What another server says that handed it on, if one did. A client that sends the header itself gains nothing: it is no token of a server. */
  forwarded(req: IncomingMessage): Exchange['forwarded'] {
    return this.#deps.forward?.sent(req);
  }

  /** Who signed the head of the request for that service. Throws or rejects with ServiceError. */
  authenticate(
    { method = '', url: rawUrl = '/', rawHeaders }: Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'>,
    service: string,
  ): Authenticated | Promise<Authenticated> {
    return this.#deps.authenticator.authenticate({ method, rawUrl, rawHeaders, service });
  }

  /**
   * Who asks is proven: from here on the request is his, and counts, whatever becomes of it; one that was handed on was counted where it
   * came to. Throws what `RequestRates.take` throws.
   */
  know(exchange: Exchange, principal: Principal, operation?: OperationName): void {
    exchange.principal = principal;
    if (exchange.span.traced) this.#tracer.caller(exchange.span, principal);
    if (!exchange.forwarded) this.#deps.rates.take(principal, exchange.req.socket.remoteAddress, operation);
  }

  /**
   * Takes memory for so much more of a body that is read whole, until the request is answered. Throws what `BodyMemory.take` throws.
   */
  hold(exchange: Exchange, bytes: number, operation?: OperationName): void {
    exchange.held ??= this.#deps.bodies.of(exchange.principal, exchange.req.socket.remoteAddress);
    exchange.held.take(bytes, operation);
  }

  /** The body is needed no more. */
  release({ held }: Exchange): void {
    held?.release();
  }

  /** Throws AccessDeniedException unless the policies allow it. */
  authorize(exchange: Exchange, principal: Principal, { action, resource, conditions = {} }: Asking): void {
    this.#deps.authorize({ principal, action, resource, conditions, sourceIp: sourceIpOf(exchange) });
  }

  /** The same for all that an operation asks for with this input; the first resource is what the request is about. */
  async authorizeOperation<K extends OperationName>(
    exchange: Exchange,
    operation: K,
    { handler, input, ctx }: { handler: OperationHandler<K>; input: Inputs[K]; ctx: RequestContext },
  ): Promise<void> {
    const named = handler.resource(input, ctx);
    const resources = named instanceof Promise ? await named : named;
    const [first, ...others] = typeof resources === 'string' ? [resources] : resources;
    exchange.resource = handler.audited?.(first) ?? first;
    const asked = handler.conditions?.(input, ctx) ?? {};
    const conditions = asked instanceof Promise ? await asked : asked;
    for (const resource of [first, ...others])
      for (const set of Array.isArray(conditions) ? conditions : [conditions])
        this.authorize(exchange, ctx.principal, { action: actionOf(operation), resource, conditions: set });
  }

  /**
   * Keeps what was answered, in milliseconds since the epoch of now; the server that a request came to keeps it. A refusal of somebody
   * whom nobody knows counts for his address.
   */
  record(
    exchange: Exchange,
    operation: string,
    status: number,
    refusal: Refusal | undefined,
    errorCode = refusal?.code,
  ): void {
    const { req, requestId, principal, resource, forwarded } = exchange;
    if (forwarded) return;
    if (refusal && !principal && refusal.status < 500) this.#deps.rates.refused(req);
    this.#deps.audit(
      auditRecord({
        at: this.#deps.clock.now(),
        requestId,
        operation,
        principal,
        resource,
        status,
        errorCode,
        sourceIp: req.socket.remoteAddress,
        userAgent: req.headers['user-agent'],
        sessionId: first(req.headers, SESSION_HEADERS),
        // Nobody vouches for what an unknown caller says.
        onBehalfOf: principal && first(req.headers, USER_HEADERS),
      }),
    );
  }
}

const SESSION_HEADERS = [
  'x-amzn-bedrock-agentcore-runtime-session-id',
  'x-amzn-code-interpreter-session-id',
  'x-amzn-browser-session-id',
];
const USER_HEADERS = ['x-amzn-bedrock-agentcore-runtime-user-id'];

function first(headers: IncomingHttpHeaders, names: readonly string[]): string | undefined {
  const found = names.map((name) => headers[name]).find((value) => value !== undefined);
  return typeof found === 'string' ? found : found?.[0];
}

/** Where a request came from: to the server that handed it on, if one did. */
export function sourceIpOf({ req, forwarded }: Pick<Exchange, 'req' | 'forwarded'>): string | undefined {
  return forwarded ? forwarded.sourceIp : req.socket.remoteAddress;
}
