import type { IncomingMessage } from 'node:http';
import { errors } from '@agentplatform/contract';
import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import {
  type AccessKeyStore,
  type AuthenticatedBody,
  gateBody,
  type IamPrincipal,
  loginWithAccessKey,
  type Spool,
} from '../../auth/index.ts';
import { type Metrics, NO_SPAN } from '../../telemetry/index.ts';
import { collectBody } from '../collect-body.ts';
import type { Admit } from '../request-rates.ts';
import { toServiceError } from '../service-errors.ts';
import { type Asking, type Exchange, Stages, type StagesDeps } from '../stages.ts';
import { writeWireError } from '../wire-error.ts';
import { declare } from './declared.ts';
import type { Asked, Credentials, KnownCall, KnownRoute, OpenCall, Route, RouteSet } from './route.ts';
import { signedForConstraint } from './signed-for-constraint.ts';

export interface RoutePipelineDeps extends StagesDeps {
  /** What access keys are looked up in that come as user and password. */
  keys: AccessKeyStore;
  spool: Spool;
  /** Throws AccessDeniedException where no policy lets the principal do the action on anything. */
  refuseEarly(principal: IamPrincipal, action: string): void;
  /** Throws ServiceUnavailableException while nothing more may be written. */
  needRoom(): void;
  metrics: Pick<Metrics, 'request'>;
  newRequestId(): string;
  log: Logger;
}

/** One request on its way. */
interface RouteExchange extends Exchange {
  readonly req: IncomingMessage;
  readonly set: RouteSet;
  readonly call: OpenCall;
  /** Somebody has decided whether it may, or nobody has to. */
  decided: boolean;
  /** What was thrown. */
  failure: unknown;
}

const MAX_BODY_BYTES = 64 * 1024;
/** As nginx logs it: the client went away before its answer began. */
const CLIENT_LEFT = 499;

/** Looking is not kept when it was allowed: scrapes and polls would fill the trail with nothing that anybody did. */
const LOOKS = /:(Get|List|Read|Pull|Validate|Doctor$)/;

/**
 * The path of every request that asks for no operation and no WebSocket, with the stages that those have: limit by address → authenticate →
 * limit by principal → authorize → answer → audit and meter. What was decided is kept by its action, looking only where it was refused; a request
 * that was refused before that by the name of its set.
 */
export class RoutePipeline {
  readonly #deps: RoutePipelineDeps;
  readonly #stages: Stages;
  readonly #exchanges = new WeakMap<FastifyRequest, RouteExchange>();

  constructor(deps: RoutePipelineDeps) {
    this.#deps = deps;
    this.#stages = new Stages(deps);
  }

  /** Serves the routes of these sets to whom `admit` admits. */
  plugin(sets: readonly RouteSet[], admit: Admit): FastifyPluginAsync {
    return async (app) => {
      // Bodies are read by the stages or the handlers, whatever type they claim.
      app.removeAllContentTypeParsers();
      app.addContentTypeParser('*', (_request, _payload, done) => done(null));
      const services = sets.flatMap(({ routes }) => routes.flatMap(({ onlySignedFor }) => onlySignedFor ?? []));
      const constraint = signedForConstraint(new Set(services));
      if (services.length > 0) app.addConstraintStrategy(constraint);
      for (const set of sets) await app.register(async (scope) => this.#serve(scope, set, admit, constraint.name));
    };
  }

  #serve(scope: FastifyInstance, set: RouteSet, admit: Admit, constraint: string): void {
    scope.addHook('onSend', async (request, reply) => this.#send(request, reply));
    scope.setErrorHandler((error, request, reply) => this.#fail(error, request, reply));
    for (const route of set.routes) {
      const { method, url, onlySignedFor } = route;
      const open = 'open' in route;
      const unlimited = open && route.unlimited;
      const credentials = open ? route.others?.credentials : route.credentials;
      scope.route<{ Params: Record<string, string> }>({
        method,
        url,
        ...(onlySignedFor === undefined ? {} : { constraints: { [constraint]: onlySignedFor } }),
        onRequest: (request, reply, done) => {
          this.#begin(set, request, reply, request.params);
          this.#exchangeOf(request).span.set('http.route', url);
          done(unlimited ? undefined : admit(request.raw));
        },
        handler: declare({ set: set.name, open, credentials }, async (request, reply) => {
          const exchange = this.#exchangeOf(request);
          const answer = await this.#stages.during(exchange, () => this.#answer(exchange, route));
          if (answer !== undefined || reply.raw.headersSent || reply.raw.destroyed) return answer;
          return reply.code(204).send();
        }),
      });
    }
  }

  #begin(set: RouteSet, request: FastifyRequest, reply: FastifyReply, params: Record<string, string>): void {
    const { newRequestId, metrics, clock } = this.#deps;
    const { raw: req } = request;
    const { raw: res } = reply;
    const requestId = newRequestId();
    const at = (req.url ?? '').indexOf('?');
    const query = new URLSearchParams(at < 0 ? '' : req.url?.slice(at + 1));
    const call = { requestId, request, reply, params, query };
    const exchange: RouteExchange = {
      ...{ req, requestId, set, call },
      span: set.untraced ? NO_SPAN : this.#stages.span(set.name, req),
      principal: undefined,
      resource: undefined,
      forwarded: undefined,
      decided: false,
      failure: undefined,
    };
    this.#exchanges.set(request, exchange);
    const startedAt = clock.monotonic();
    const meter = metrics.request(set.name);
    meter.began();
    res.once('close', () => {
      const status = res.headersSent ? res.statusCode : CLIENT_LEFT;
      meter.ended(status, (clock.monotonic() - startedAt) / 1000);
      const { decided, principal, failure } = exchange;
      this.#stages.finish(exchange, status, failure === undefined ? undefined : codeOf(failure));
      if (failure === undefined || (decided && principal)) return;
      this.#stages.record(exchange, set.name, status, { status, code: codeOf(failure) });
    });
  }

  async #answer(exchange: RouteExchange, route: Route): Promise<unknown> {
    if (!('open' in route)) {
      const known = await this.#known(exchange, route.credentials, route);
      const asked = await route.ask(known);
      this.#authorize(exchange, known, asked.rights);
      return asked.answer();
    }
    if (route.open === 'everybody' || route.open(exchange.req)) exchange.decided = true;
    else if (route.others) {
      const known = await this.#known(exchange, route.others.credentials);
      this.#authorize(exchange, known, route.others.rights);
    } else throw errors.missingAuthentication('This is not served to whoever asks.');
    return route.answer(exchange.call);
  }

  /** Who asks, counted, and his verified body. */
  async #known(
    exchange: RouteExchange,
    credentials: Credentials,
    { body = MAX_BODY_BYTES, action, stores }: Pick<KnownRoute, 'body' | 'action' | 'stores'> = {},
  ) {
    if (credentials.kind === 'access-key') {
      const principal = await this.#login(exchange.req.headers.authorization);
      this.#stages.know(exchange, principal);
      return this.#call(exchange, principal, Buffer.alloc(0), undefined);
    }
    const { principal, body: signed } = await this.#stages.authenticate(exchange.req, credentials.service);
    // Anybody may name an access key: what its signature proves only with the body is nobody's until then.
    const late = signed.kind === 'undeclared';
    if (late && body === 'streamed')
      throw errors.validation('Missing required header for this request: x-amz-content-sha256');
    if (!late) {
      this.#stages.know(exchange, principal);
      if (action !== undefined) this.#deps.refuseEarly(principal, action);
    }
    if (stores) this.#deps.needRoom();
    const bytes = body === 'streamed' ? Buffer.alloc(0) : await this.#whole(exchange, signed, body);
    if (late) this.#stages.know(exchange, principal);
    return this.#call(exchange, principal, bytes, signed);
  }

  /** Rejects with UnauthorizedException. */
  async #login(authorization = ''): Promise<IamPrincipal> {
    const match = /^Basic ([A-Za-z0-9+/=_-]{1,8192})$/i.exec(authorization);
    const pair = Buffer.from(match?.[1] ?? '', 'base64').toString('utf8');
    const colon = pair.indexOf(':');
    const { keys } = this.#deps;
    const principal =
      colon > 0 ? await loginWithAccessKey(keys, pair.slice(0, colon), pair.slice(colon + 1)) : undefined;
    if (principal) return principal;
    throw errors.unauthorized('log in with an access key id as user and its secret access key as password');
  }

  async #whole(exchange: RouteExchange, signed: AuthenticatedBody, maxBytes: number): Promise<Buffer> {
    const { req } = exchange;
    const { 'content-length': length, 'transfer-encoding': coding } = req.headers;
    const hold = (bytes: number): void => this.#stages.hold(exchange, bytes);
    const contentLength = coding !== undefined ? undefined : Number(length ?? 0);
    const gated = await gateBody(req, signed, { contentLength, maxBytes, spool: this.#deps.spool, hold });
    return gated.kind === 'buffer' ? gated.data : collectBody(gated.stream, hold);
  }

  #call(
    exchange: RouteExchange,
    principal: IamPrincipal,
    body: Buffer,
    signedBody: AuthenticatedBody | undefined,
  ): KnownCall {
    const require = (action: string, resource: string): void =>
      this.#require(exchange, principal, { action, resource });
    const decide: KnownCall['decide'] = (asking, run) => this.#decide(exchange, asking, run);
    const hold = (bytes: number): void => this.#stages.hold(exchange, bytes);
    const { accountId } = principal;
    return { ...exchange.call, principal, accountId, body, signedBody, require, decide, hold };
  }

  #authorize(exchange: RouteExchange, { principal }: KnownCall, rights: Asked['rights']): void {
    if (rights === 'later') return;
    if (rights === 'known') exchange.decided = true;
    else for (const asking of [rights].flat()) this.#require(exchange, principal, asking);
  }

  #require(exchange: RouteExchange, principal: IamPrincipal, asking: Asking): void {
    this.#decide(exchange, asking, () => this.#stages.authorize(exchange, principal, asking));
  }

  /** Runs `decide` and keeps its outcome; hands on what it returns or throws. */
  #decide<Result>(exchange: RouteExchange, { action, resource }: Asking, decide: () => Result): Result {
    exchange.decided = true;
    exchange.resource = resource;
    let result: Result;
    try {
      if (!LOOKS.test(action)) this.#deps.needRecord();
      result = decide();
    } catch (error) {
      const status = toServiceError(error)?.status ?? 500;
      this.#stages.record(exchange, action, status, { status, code: codeOf(error) });
      throw error;
    }
    if (!LOOKS.test(action)) this.#stages.record(exchange, action, 200, undefined);
    return result;
  }

  /** The last look at an answer: no success leaves before somebody has decided that it may. */
  #send(request: FastifyRequest, reply: FastifyReply): void {
    const { set, call, decided, failure } = this.#exchangeOf(request);
    if (!decided && failure === undefined)
      throw errors.internal(`${set.name} answered before anybody had decided that it may.`);
    if (set.headers) reply.headers(set.headers(call));
  }

  #fail(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const exchange = this.#exchangeOf(request);
    const { set, call } = exchange;
    exchange.failure = error;
    return set.writeError?.(error, call) ?? writeWireError(error, reply, this.#deps.log);
  }

  #exchangeOf(request: FastifyRequest): RouteExchange {
    const exchange = this.#exchanges.get(request);
    if (!exchange) throw new Error('a route was reached beside its declaration');
    return exchange;
  }
}

/** The code of what was thrown, by which a client knows it. */
function codeOf(error: unknown): string | undefined {
  const known = toServiceError(error) ?? error;
  return known instanceof Error && 'code' in known && typeof known.code === 'string' ? known.code : undefined;
}
