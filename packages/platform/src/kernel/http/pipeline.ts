import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import {
  bodyRule,
  type CoverageEntry,
  decodeRequest,
  decodeResponse,
  encodeError,
  encodeResponse,
  errors,
  type OperationName,
  operations,
  type RouteMatch,
  type ServiceError,
  type WireResponse,
} from '@agentplatform/contract';
import type { Logger } from 'pino';
import {
  type Authenticated,
  type AuthenticatedBody,
  gateBody,
  type Hold,
  type Principal,
  type Spool,
  type SpooledBody,
} from '../auth/index.ts';
import type { PeerForwarder } from '../peers/index.ts';
import type { OperationHandler, OperationHandlers, RequestContext } from '../service.ts';
import { HeldElsewhereError } from '../sessions/index.ts';
import type { IdempotencyStore } from '../storage/index.ts';
import type { Metrics, RequestMetrics } from '../telemetry/index.ts';
import { actionOf } from './action-of.ts';
import { clientTokenKey, keptAnswer } from './client-tokens.ts';
import { collectBody } from './collect-body.ts';
import { lingerAfterAnswer } from './linger.ts';
import { RequestBody } from './request-body.ts';
import { HttpRequestContext } from './request-context.ts';
import { respond } from './respond.ts';
import { toOperationError } from './service-errors.ts';
import { type Exchange, Stages, type StagesDeps } from './stages.ts';
import { answerUnserved } from './unserved-services.ts';
import { changes, writes } from './writes.ts';

export interface PipelineDeps extends StagesDeps {
  handlers: OperationHandlers;
  /** Throws AccessDeniedException when `principal` may do `action` on nothing at all. */
  refuseEarly(principal: Principal, action: string): void;
  spool: Spool;
  idempotency: IdempotencyStore;
  metrics: Metrics;
  /** Throws while the disk has no room for anything new. */
  needRoom(): void;
  /** Hands a request on to the server that has its session; absent where there is no other. */
  forward?: Pick<PeerForwarder, 'request' | 'sent'> | undefined;
  /** Notes what a test's client drove; absent in production. */
  cover: ((entry: CoverageEntry) => void) | undefined;
  /** Largest body of one operation, in bytes; undefined leaves the model's own limit. */
  maxBodyBytes(operation: OperationName): number | undefined;
  newRequestId(): string;
  region: string;
  log: Logger;
}

type AnyHandler = OperationHandler<OperationName>;

/** Largest body that is decoded before its sender's token is looked at: a command is the longest there is, and has 64 KB. */
const UNKNOWN_SENDER_BYTES = 256 * 1024;

/** Of a refused body: up to this it is read to its end, and the connection serves on. */
const SHORT_BYTES = 1_000_000;

/** As nginx logs it: the client went away before its answer began, which is no failure of ours. */
const CLIENT_LEFT = 499;

/** One request on its way through the list below. */
interface OperationExchange extends Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly startedAt: number;
  readonly route: RouteMatch;
  readonly metrics: RequestMetrics;
  /** What streams of it is let go with the request, read or not. */
  body: Readable | undefined;
}

/**
 * The path of every request to an operation of the contract, top to bottom in `#answer`:
 * request id → route → authenticate → count → decode and validate → authorize → idempotency → handle → encode → meter and audit.
 * Authorization stands behind decoding because condition keys such as actor and namespace live in bodies; only who may do it
 * nowhere is refused before.
 */
export class Pipeline {
  readonly #deps: PipelineDeps;
  readonly #stages: Stages;

  constructor(deps: PipelineDeps) {
    this.#deps = deps;
    this.#stages = new Stages(deps);
  }

  /** Answers one request, with `refusal` if there is one; with `signedPass` not when a signature over its head says who sent it. Never rejects. */
  async handle(
    req: IncomingMessage,
    res: ServerResponse,
    route: RouteMatch,
    refusal?: ServiceError,
    signedPass = false,
  ): Promise<void> {
    const { clock, newRequestId, metrics } = this.#deps;
    const exchange: OperationExchange = {
      req,
      res,
      route,
      requestId: newRequestId(),
      span: this.#stages.span(route.operation, req),
      startedAt: clock.monotonic(),
      metrics: metrics.request(route.operation),
      principal: undefined,
      resource: undefined,
      forwarded: undefined,
      body: undefined,
    };
    exchange.metrics.began();
    let failure: ServiceError | undefined;
    try {
      if (refusal && !signedPass) throw refusal;
      const answer = await this.#stages.during(exchange, () => this.#answer(exchange, refusal));
      this.#stages.release(exchange);
      await respond(res, answer, exchange.requestId);
    } catch (error) {
      failure = await this.#fail(exchange, error);
    }
    this.#letGo(exchange);
    this.#record(exchange, failure);
  }

  /** Answers a request to a path that is no operation and nothing else. Never rejects. */
  async refuse(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const requestId = this.#deps.newRequestId();
    this.#deps.rates.refused(req);
    await this.#refuse(req, res, answerUnserved(req, requestId), requestId);
  }

  async #answer(exchange: OperationExchange, refusal: ServiceError | undefined): Promise<WireResponse> {
    const { req, route } = exchange;
    const url = req.url ?? '/';
    const at = url.indexOf('?');
    const handler = this.#deps.handlers[route.operation] as AnyHandler | undefined;

    exchange.forwarded = this.#stages.forwarded(req);
    const token = bearerToken(req);
    if (refusal && token !== undefined) throw refusal;
    const signed = token === undefined ? await this.#authenticate(req, route.operation, refusal) : undefined;
    // Anybody may name an access key: what its signature proves only with the body is nobody's until then.
    const late = signed?.body.kind === 'undeclared';
    if (refusal && late) throw refusal;
    if (signed && !late) this.#stages.know(exchange, signed.principal, route.operation);
    if (!handler) throw errors.notImplemented(route.operation);
    if (token !== undefined && !handler.bearer) {
      throw errors.missingAuthentication('This operation takes signed requests, not bearer tokens.', {
        remedy: 'Sign the request with AWS Signature Version 4.',
      });
    }

    if (signed && !late) this.#refuseEarly(route.operation, signed.principal, req);
    const body = await this.#body(exchange, signed?.body);
    if (body instanceof RequestBody && body.content instanceof Readable) exchange.body = body.content;
    if (signed && late) {
      this.#stages.know(exchange, signed.principal, route.operation);
      this.#refuseEarly(route.operation, signed.principal, req);
    }
    const input = decodeRequest(route.operation, {
      labels: route.labels,
      query: at < 0 ? '' : url.slice(at + 1),
      headers: req.headers,
      body,
    });

    const principal = signed?.principal ?? (await handler.bearer?.(input, token ?? '', req.headers));
    if (!principal) throw errors.missingAuthentication('The request carries neither a signature nor a bearer token.');
    if (!signed) this.#stages.know(exchange, principal, route.operation);
    const ctx = this.#context(exchange, principal, signed?.signedHeaders);
    await this.#stages.authorizeOperation(exchange, route.operation, { handler, input, ctx });
    if (writes(route.operation)) this.#deps.needRoom();
    if (changes(route.operation)) this.#deps.needRecord();

    const handle = async (): Promise<WireResponse> => {
      let output: Awaited<ReturnType<AnyHandler['handle']>>;
      try {
        output = await handler.handle(input, ctx);
      } catch (error) {
        if (!(error instanceof HeldElsewhereError)) throw error;
        return this.#forward(error, route.operation, body, exchange, ctx);
      }
      return encodeResponse(route.operation, output, (error) =>
        // Who leaves in the middle breaks it too.
        ctx.log[exchange.res.destroyed ? 'debug' : 'error'](
          { err: error, operation: route.operation },
          'an event stream broke',
        ),
      );
    };
    // What was forwarded has its token where it came to.
    const key = exchange.forwarded ? undefined : clientTokenKey(route.operation, input, principal, handler);
    return key === undefined ? handle() : this.#deps.idempotency.run(key, keptAnswer, handle);
  }

  /** Sessions are looked for before a body is read, so that it is whole; a request is handed on once. */
  async #forward(
    held: HeldElsewhereError,
    operation: OperationName,
    body: RequestBody | Uint8Array | undefined,
    { req, forwarded, span }: OperationExchange,
    ctx: RequestContext,
  ): Promise<WireResponse> {
    const { forward } = this.#deps;
    if (!forward || forwarded) throw held;
    const content = body instanceof RequestBody ? body.content : body;
    const { principal, sourceIp } = ctx;
    const forwarding = { req, held, principal, sourceIp, trace: span.context };
    const answer = await forward.request(forwarding, content, body?.length, (run) => ctx.onGone(run));
    // Read, so that a refusal is one here too, and only what was done is kept under a token.
    return operations[operation].responds === 'json'
      ? encodeResponse(operation, await decodeResponse(operation, answer))
      : answer;
  }

  /** A caller with a valid signature is not refused because another caller at his address is refused too often. */
  async #authenticate(
    req: IncomingMessage,
    operation: OperationName,
    refusal: ServiceError | undefined,
  ): Promise<Authenticated> {
    try {
      return await this.#stages.authenticate(req, operations[operation].signingName);
    } catch (error) {
      throw refusal ?? error;
    }
  }

  /** The verified body: a stream for the operations that hand it through, all bytes for the others. Without a signature, `signed` is absent. */
  async #body(
    exchange: OperationExchange,
    signed: AuthenticatedBody | undefined,
  ): Promise<RequestBody | Uint8Array | undefined> {
    const {
      req,
      route: { operation },
    } = exchange;
    const hold = (bytes: number): void => this.#stages.hold(exchange, bytes, operation);
    const rule = bodyRule(operation);
    const length = req.headers['content-length'];
    const hasBody = length !== undefined || req.headers['transfer-encoding'] !== undefined;
    if (!hasBody) return undefined;
    const { spool } = this.#deps;
    const maxBytes = this.#deps.maxBodyBytes(operation) ?? rule.maxBytes;
    // Who sends it is not known before it is decoded: anybody could fill the memory with anything large.
    if (!signed && !rule.streams) return collect(await spool.take(req, Math.min(maxBytes, UNKNOWN_SENDER_BYTES)), hold);
    const gated = await gateBody(req, signed ?? { kind: 'unsigned' }, {
      contentLength: length === undefined ? undefined : Number(length),
      maxBytes,
      spool,
      hold,
    });
    if (rule.streams) return new RequestBody(gated);
    return gated.kind === 'buffer' ? gated.data : collectBody(gated.stream, hold);
  }

  #context(
    exchange: OperationExchange,
    principal: Principal,
    signedHeaders: ReadonlySet<string> | undefined,
  ): RequestContext {
    const { region, log } = this.#deps;
    const { req, res, requestId, forwarded, span } = exchange;
    const require = async (action: string, resource: string): Promise<void> =>
      this.#stages.authorize(exchange, principal, { action, resource });
    const holdBody = (bytes: number): void => this.#stages.hold(exchange, bytes, exchange.route.operation);
    const { headers } = req;
    return new HttpRequestContext({
      holdBody,
      requestId,
      principal,
      region,
      headers,
      signedHeaders,
      res,
      forwarded,
      span,
      log,
      require,
    });
  }

  /** Before a body is read that has to be understood: who may do it nowhere has no business sending one. */
  #refuseEarly(operation: OperationName, principal: Principal, { headers }: IncomingMessage): void {
    const hasBody = headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
    if (!hasBody || bodyRule(operation).streams) return;
    this.#deps.refuseEarly(principal, actionOf(operation));
  }

  /** Answers with the wire's error; what is no ServiceError is a defect of ours and logged as one. */
  async #fail(exchange: OperationExchange, error: unknown): Promise<ServiceError> {
    const { req, res, requestId } = exchange;
    const known = toOperationError(error);
    const failure = known ?? errors.internal('The platform failed.', { cause: error });
    const log = this.#deps.log.child({ requestId, operation: exchange.route.operation });
    if (res.headersSent) {
      // Unless it was the client who broke it: what it is given breaks with the body's own error.
      if (!res.destroyed || res.errored === error) log.warn({ err: error }, 'an answer broke after it had begun');
      res.destroy();
      return failure;
    }
    // Told by the answer, not by the request: one that was read to its end counts as destroyed.
    if (!known && res.destroyed) log.info({ err: error }, 'a request failed after its client had left');
    else if (!known) log.error({ err: error }, 'a request failed for a reason inside the platform');
    else log.debug({ err: error }, 'request refused');
    // Nobody is there to be told.
    if (res.destroyed) return failure;
    await this.#refuse(req, res, encodeError(known ?? error), requestId);
    return failure;
  }

  /** Deals with the unread rest of the body. A short rest is read; for a long one the client is told that the connection ends. */
  async #refuse(req: IncomingMessage, res: ServerResponse, response: WireResponse, requestId: string): Promise<void> {
    if (!req.complete) {
      lingerAfterAnswer(req, this.#deps.clock);
      const bytes = Number(req.headers['content-length'] ?? Number.POSITIVE_INFINITY);
      if (bytes > SHORT_BYTES) response.headers.connection = 'close';
    }
    await respond(res, response, requestId).catch(() => res.destroy());
    // Who began to read it has stopped, and the next request stands behind it.
    if (!req.complete) req.unpipe().resume();
  }

  /** An answer may be over before the body that it answers: a file that holds its rest, and the next request, would wait for ever. */
  #letGo({ req, body }: OperationExchange): void {
    if (!body || body.destroyed) return;
    body.destroy();
    if (!req.complete) req.unpipe().resume();
  }

  #record(exchange: OperationExchange, failure: ServiceError | undefined): void {
    const { req, res } = exchange;
    const { operation } = exchange.route;
    const left = res.destroyed && !res.headersSent;
    const status = left ? CLIENT_LEFT : res.statusCode;
    exchange.metrics.ended(status, (this.#deps.clock.monotonic() - exchange.startedAt) / 1000);
    this.#deps.cover?.({ operation, userAgent: req.headers['user-agent'] ?? '', status });
    const errorCode = left ? 'ClientLeft' : failure?.code;
    this.#stages.record(exchange, operation, status, failure, errorCode);
    this.#stages.finish(exchange, status, errorCode);
  }
}

async function collect(spooled: SpooledBody, hold: Hold): Promise<Buffer> {
  if (spooled.kind === 'file') return collectBody(spooled.open(), hold);
  hold(spooled.length);
  return spooled.data;
}

function bearerToken(req: IncomingMessage): string | undefined {
  const header = req.headers.authorization;
  return header !== undefined && /^bearer /i.test(header) ? header.slice(7).trim() : undefined;
}
