import { type IncomingMessage, METHODS, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { encodeError, errors, requestIdHeader, type ServiceError } from '@agentplatform/contract';
import type { FastifyPluginAsync, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import type { Logger } from 'pino';
import { gateBody, type Spool } from '../auth/index.ts';
import { onAbort } from '../on-abort.ts';
import type { PeerForwarder } from '../peers/index.ts';
import { HeldElsewhereError } from '../sessions/index.ts';
import type { Metrics, Span } from '../telemetry/index.ts';
import { type Entered, type Entering, Entry, type EntryRequest, type Prove } from './entry.ts';
import type { OnGone, UpstreamResponse } from './push-body.ts';
import { closeSignal } from './request-context.ts';
import type { Admit } from './request-rates.ts';
import { respond } from './respond.ts';
import { declare } from './routes/declared.ts';
import { SIGNED } from './routes/route.ts';
import { toServiceError } from './service-errors.ts';
import { Stages, type StagesDeps } from './stages.ts';

/** HTTP requests that a service hands through. */
export interface PassService {
  /** What metrics call it. */
  operation: string;
  /** Where it is served, in the words of Fastify. */
  urls: readonly string[];
  /** All of them when absent. */
  methods?: readonly string[];
  /** Served to what runs in sandboxes as well, on their listener. */
  sandboxes?: true;
  /** What a request asks for. Throws the wire's error when it cannot be read. */
  read(req: IncomingMessage): PassRequest;
}

export interface PassRequest extends EntryRequest {
  /** Sends it on for a caller who is known, counted and allowed. Rejects with the wire's error while nothing was answered. */
  pass(passing: Passing): Promise<UpstreamResponse>;
}

/** A request that may go through. */
export interface Passing extends Entered {
  req: IncomingMessage;
  requestId: string;
  /** Held to its signature: a stream that does not fit ends in an error. Absent when the request has no signature. */
  body: Uint8Array | Readable | undefined;
  signal: AbortSignal;
  onGone: OnGone;
  span: Span;
  /** So many more requests came within this one: each counts, and has its record. Throws ThrottlingException. */
  countMore(requests: number): void;
  /** Takes memory for so much more of a body that is read whole, until the answer begins. Throws 429 or 503 where there is none. */
  hold(bytes: number): void;
}

export interface PassThroughDeps extends StagesDeps {
  /** Hands it on to the server that has its session; absent where there is no other. */
  forward?: Pick<PeerForwarder, 'relay' | 'sent'> | undefined;
  spool: Spool;
  metrics: Metrics;
  newRequestId(): string;
  /** Longest body, in bytes, of a request whose signature does not declare its hash: it waits on the disk until it is proven. */
  maxSpooledBytes: number;
  log: Logger;
}

/** Hands through the requests that it admits. */
export type PassPlugin = (admit: Admit) => FastifyPluginAsync;

/** As nginx logs it: the client went away before its answer began. */
const CLIENT_LEFT = 499;

/** One request on its way. */
interface PassExchange {
  entering: Entering;
  res: ServerResponse;
  /** What its caller asks to do, once that is read. */
  operation: string;
  body: Uint8Array | Readable | undefined;
  /** It is one, or that many in one. */
  requests: number;
}

/**
 * The path of every request that is handed through, top to bottom in `#answer`: request id → read → enter (`Entry`) → pass, or hand on to the
 * server that has the session → meter and audit.
 */
export function passThrough(service: PassService, deps: PassThroughDeps): PassPlugin {
  const through = new PassThrough(service, deps);
  return (admit) => async (app) => {
    for (const method of METHODS)
      if (method !== 'CONNECT' && !app.supportedMethods.includes(method)) app.addHttpMethod(method, { hasBody: true });
    const handler = declare(
      { set: service.operation, open: false, credentials: SIGNED },
      (request: FastifyRequest, reply: FastifyReply) => {
        reply.hijack();
        return through.serve(request.raw, reply.raw);
      },
    );
    const onRequest: onRequestHookHandler = (request, _reply, done) => done(admit(request.raw));
    const method = [...(service.methods ?? app.supportedMethods)];
    for (const url of service.urls) app.route({ method, url, exposeHeadRoute: false, onRequest, handler });
  };
}

class PassThrough {
  readonly #service: PassService;
  readonly #deps: PassThroughDeps;
  readonly #stages: Stages;
  readonly #entry: Entry;

  constructor(service: PassService, deps: PassThroughDeps) {
    this.#service = service;
    this.#deps = deps;
    this.#stages = new Stages(deps);
    this.#entry = new Entry(this.#stages);
  }

  /** Never rejects. */
  async serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { operation } = this.#service;
    const metrics = this.#deps.metrics.request(operation);
    const began = this.#deps.clock.monotonic();
    const entering = this.#entry.begin(operation, req, this.#deps.newRequestId(), closeSignal(res));
    const exchange: PassExchange = { entering, res, operation, body: undefined, requests: 1 };
    metrics.began();
    let failure: ServiceError | undefined;
    try {
      await this.#stages.during(entering, () => this.#answer(exchange));
    } catch (error) {
      failure = await this.#fail(exchange, error);
    }
    letGo(exchange);
    const status = res.destroyed && !res.headersSent ? CLIENT_LEFT : res.statusCode;
    metrics.ended(status, (this.#deps.clock.monotonic() - began) / 1000);
    for (let i = 0; i < exchange.requests; i++) this.#stages.record(entering, exchange.operation, status, failure);
    this.#stages.finish(entering, status, failure?.code);
  }

  async #answer(exchange: PassExchange): Promise<void> {
    const { entering, res } = exchange;
    const { req, requestId, signal, span } = entering;
    const request = this.#service.read(req);
    exchange.operation = request.operation;
    const entered = await this.#entry.enter(entering, request, this.#take(exchange));
    const onGone: OnGone = (run) => onAbort(signal, run);
    const countMore = (requests: number): void => {
      for (let i = 0; i < requests; i++) {
        this.#stages.know(entering, entered.principal);
        exchange.requests++;
      }
    };
    const hold = (bytes: number): void => this.#stages.hold(entering, bytes);
    const passing = { ...entered, req, requestId, body: exchange.body, signal, onGone, span, countMore, hold };
    const { status, headers, body } = await request.pass(passing).catch((error: unknown) => {
      if (!(error instanceof HeldElsewhereError)) throw error;
      return this.#forward(error, entering, passing);
    });
    this.#stages.release(entering);
    if (res.destroyed) return body.cancel(new Error('the client went away before the answer began'));
    const head = [requestIdHeader, requestId];
    for (const [name, value] of Object.entries(headers))
      for (const one of typeof value === 'string' ? [value] : (value ?? [])) head.push(name, one);
    res.writeHead(status, head);
    await body.pushTo(res);
  }

  /** Takes the body into the exchange once its signature allows it. */
  #take(exchange: PassExchange): Prove {
    const { req } = exchange.entering;
    const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
    return async (signed) => {
      if (length === undefined && coding === undefined) return;
      const { spool, maxSpooledBytes } = this.#deps;
      const gated = await gateBody(req, signed, {
        contentLength: length === undefined ? undefined : Number(length),
        maxBytes: signed.kind === 'undeclared' ? maxSpooledBytes : Number.POSITIVE_INFINITY,
        spool,
        hold: (bytes) => this.#stages.hold(exchange.entering, bytes),
      });
      exchange.body = gated.kind === 'buffer' ? gated.data : gated.stream;
    };
  }

  /** A request is handed on once. */
  #forward(held: HeldElsewhereError, { forwarded }: Entering, passing: Passing): Promise<UpstreamResponse> {
    const { forward } = this.#deps;
    if (!forward || forwarded) throw held;
    const { req, principal, body, onGone, span } = passing;
    const { 'content-length': length } = req.headers;
    const sourceIp = req.socket.remoteAddress;
    const forwarding = { req, held, principal, sourceIp, trace: span.context };
    return forward.relay(forwarding, body, length === undefined ? undefined : Number(length), onGone);
  }

  async #fail({ entering, res, operation }: PassExchange, error: unknown): Promise<ServiceError> {
    const known = toServiceError(error);
    const failure = known ?? errors.internal('The platform failed.', { cause: error });
    const { req, requestId } = entering;
    const log = this.#deps.log.child({ requestId, operation });
    if (known || res.destroyed) log.debug({ err: error }, 'a request was not handed through');
    else if (res.headersSent) log.warn({ err: error }, 'an answer broke after it had begun');
    else log.error({ err: error }, 'a request failed for a reason inside the platform');
    if (res.headersSent || res.destroyed) {
      res.destroy();
      return failure;
    }
    const answer = encodeError(failure);
    // What is still to come of a body is not waited for.
    if (!req.complete) answer.headers.connection = 'close';
    await respond(res, answer, requestId).catch(() => res.destroy());
    return failure;
  }
}

/** An answer may be over before the body that it answers. */
function letGo({ entering: { req }, body }: PassExchange): void {
  if (body instanceof Readable && !body.destroyed) body.destroy();
  if (!req.complete) req.unpipe().resume();
}
