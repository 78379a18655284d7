import {
  checkInput,
  decodeResponse,
  encodeRequest,
  encodeResponse,
  errors,
  type Inputs,
  type OperationName,
  type Outputs,
  type ServiceError,
  type WireResponse,
} from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Principal } from '../auth/index.ts';
import { onAbort } from '../on-abort.ts';
import type { PeerForwarder } from '../peers/index.ts';
import type { OperationHandler, OperationHandlers, RequestContext } from '../service.ts';
import { HeldElsewhereError } from '../sessions/index.ts';
import type { IdempotencyStore } from '../storage/index.ts';
import { type Metrics, NO_SPAN, type Span, TRACE_HEADERS } from '../telemetry/index.ts';
import { clientTokenKey, keptAnswer } from './client-tokens.ts';
import { toOperationError } from './service-errors.ts';
import { type Exchange, type Source, Stages, type StagesDeps } from './stages.ts';
import { changes, writes } from './writes.ts';

/** For whom a service of the platform calls an operation of another. */
export interface Caller {
  principal: Principal;
  /** The request that the call is made for; absent for work in the background. Of its headers the call has those of its trace alone. */
  request?: Pick<RequestContext, 'requestId' | 'headers' | 'origin' | 'signal' | 'sourceIp'> & { span?: Span };
  /** The session that the call is made in, where the operation reads it from its headers. */
  sessionId?: string;
  /** The end user for whom the principal acts, as `X-Amzn-Bedrock-AgentCore-Runtime-User-Id` would say. */
  userId?: string;
}

export interface OperationCallsDeps extends StagesDeps {
  metrics: Pick<Metrics, 'request'>;
  idempotency: Pick<IdempotencyStore, 'run'>;
  /** Hands a call on to the server that has its session; absent where there is no other. */
  forward?: Pick<PeerForwarder, 'relay' | 'sent'> | undefined;
  /** Throws while the disk has no room for anything new. */
  needRoom(): void;
  newRequestId(): string;
  region: string;
  log: Logger;
}

/**
 * Calls of one service to another's operations. Rates, policies, client tokens, metrics and the audit trail see each as a request of the caller himself: a
 * service has no rights of its own to lend. One whose session another server has is sent there, as a client's request would be.
 */
export class OperationCalls {
  readonly #deps: OperationCallsDeps;
  readonly #stages: Stages;
  #handlers: OperationHandlers = {};

  constructor(deps: OperationCallsDeps) {
    this.#deps = deps;
    this.#stages = new Stages(deps);
  }

  /** What there is to call, once every service is made. */
  serve(handlers: OperationHandlers): void {
    this.#handlers = handlers;
  }

  /** Whether a service serves the operation. */
  serves(operation: OperationName): boolean {
    return operation in this.#handlers;
  }

  /** Rejects with the ServiceError that a client would have been told. */
  async call<K extends OperationName>(operation: K, input: Inputs[K], caller: Caller): Promise<Outputs[K]> {
    const { newRequestId, metrics, clock } = this.#deps;
    const exchange: Exchange = {
      req: sourceOf(caller),
      requestId: newRequestId(),
      span: caller.request?.span?.child(operation, 'internal') ?? NO_SPAN,
      principal: undefined,
      resource: undefined,
      forwarded: undefined,
    };
    const meter = metrics.request(operation);
    const startedAt = clock.monotonic();
    meter.began();
    let failure: ServiceError | undefined;
    try {
      return await this.#answer(operation, input, caller, exchange);
    } catch (error) {
      failure = toOperationError(error) ?? errors.internal('The platform failed.', { cause: error });
      throw failure;
    } finally {
      const status = failure?.status ?? 200;
      meter.ended(status, (clock.monotonic() - startedAt) / 1000);
      this.#stages.record(exchange, operation, status, failure);
      this.#stages.finish(exchange, status, failure?.code);
    }
  }

  async #answer<K extends OperationName>(
    operation: K,
    input: Inputs[K],
    caller: Caller,
    exchange: Exchange,
  ): Promise<Outputs[K]> {
    this.#stages.know(exchange, caller.principal, operation);
    const handler: OperationHandler<K> | undefined = this.#handlers[operation];
    if (!handler) throw errors.notImplemented(operation);
    checkInput(operation, input);
    const ctx = this.#context(operation, exchange, caller);
    await this.#stages.authorizeOperation(exchange, operation, { handler, input, ctx });
    if (writes(operation)) this.#deps.needRoom();
    if (changes(operation)) this.#deps.needRecord();
    const handle = async (): Promise<Outputs[K]> => {
      try {
        return await handler.handle(input, ctx);
      } catch (error) {
        if (!(error instanceof HeldElsewhereError)) throw error;
        return this.#forward(error, operation, input, ctx);
      }
    };
    const key = clientTokenKey(operation, input, caller.principal, handler);
    if (key === undefined) return handle();
    const keep = async (): Promise<WireResponse> => encodeResponse(operation, await handle());
    return decodeResponse(operation, await this.#deps.idempotency.run(key, keptAnswer, keep));
  }

  async #forward<K extends OperationName>(
    held: HeldElsewhereError,
    operation: K,
    input: Inputs[K],
    { principal, span, sourceIp, headers: given, onGone }: RequestContext,
  ): Promise<Outputs[K]> {
    const { forward } = this.#deps;
    if (!forward) throw held;
    const { method, url, headers, body } = encodeRequest(operation, input);
    // As a bearer sends it himself: the other server asks who accepts it.
    const bearer = principal.kind === 'oauth' ? { authorization: `Bearer ${principal.token}` } : {};
    const rawHeaders = Object.entries({ ...given, ...headers, ...bearer }).flatMap(([name, value]) => [
      name,
      String(value),
    ]);
    const req = { method, url, rawHeaders };
    const content = typeof body === 'string' ? Buffer.from(body) : body;
    const length = content instanceof Uint8Array ? content.length : undefined;
    const answer = await forward.relay(
      { req, held, principal, sourceIp, trace: span.context },
      content,
      length,
      onGone,
    );
    answer.body.onSettled(onGone(() => answer.body.cancel(new Error('the request that made this call has ended'))));
    return decodeResponse(operation, answer);
  }

  #context(operation: OperationName, exchange: Exchange, { principal, request }: Caller): RequestContext {
    const { region, log } = this.#deps;
    const { requestId, span } = exchange;
    const signal = request?.signal ?? new AbortController().signal;
    return {
      ...{ requestId, principal, region, signal, span, sourceIp: request?.sourceIp },
      accountId: principal.accountId,
      headers: exchange.req.headers,
      origin: request?.origin ?? '',
      log: log.child({ requestId, ...(request ? { forRequest: request.requestId } : {}) }),
      onGone: (run) => onAbort(signal, run),
      require: async (action, resource) => this.#stages.authorize(exchange, principal, { action, resource }),
      holdBody: (bytes) => this.#stages.hold(exchange, bytes, operation),
    };
  }
}

function sourceOf({ request, sessionId, userId }: Caller): Source {
  const trace = TRACE_HEADERS.map((name) => [name, request?.headers[name]] as const);
  const own = {
    'x-amzn-bedrock-agentcore-runtime-session-id': sessionId,
    'x-amzn-bedrock-agentcore-runtime-user-id': userId,
    'user-agent': 'agentplatform',
  };
  const headers = Object.fromEntries([...trace, ...Object.entries(own)].filter(([, value]) => value !== undefined));
  return { socket: { remoteAddress: request?.sourceIp }, headers };
}
