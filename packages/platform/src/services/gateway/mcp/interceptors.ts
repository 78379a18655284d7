import { type control, type DocumentValue, ServiceError } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Iam } from '../../../kernel/auth/index.ts';
import { isDeeperThan } from '../../../kernel/depth.ts';
import type { FunctionCaller } from '../../functions/index.ts';
import { type Gateway, interceptorsAt } from '../gateways/gateway.ts';
import { gatewayRole } from '../outbound/gateway-role.ts';
import type { ToolCaller } from '../targets/target-kind.ts';
import type { JsonObject } from '../tools/index.ts';
import { isObject } from '../tools/json-pointer.ts';
import { answerHeaders, interceptorHeaders, requestHeaders } from './interceptor-headers.ts';
import { errorMessage, JSON_RPC_CODES } from './refusal.ts';
import { wholeAnswer } from './whole-answer.ts';

export interface InterceptorsDeps {
  functions: FunctionCaller;
  roleMay: Iam['roleMay'];
  log: Logger;
}

/** A message of MCP on its way to a gateway. */
export interface Intercepted {
  body: JsonObject;
  /** As it came. */
  rawBody: string;
  path: string;
  caller: ToolCaller;
  signal: AbortSignal;
}

/** What an interceptor would have the gateway answer. */
interface InterceptedAnswer {
  status: number;
  headers: Record<string, string>;
  /** Undefined where there is none. */
  body: DocumentValue | undefined;
}

/** The message as it goes on, or the answer that takes its place. */
type RequestOutcome = { body: JsonObject; headers: Record<string, string> } | { answer: InterceptedAnswer };

const VERSION = '1.0';
/** Of messages on their way through an interceptor, and of what it answers: deeper ones could not be written again. */
export const MOST_DEPTH = 300;

/** Functions of a gateway's owner that see each message before its targets do, and each answer before its client does. What goes wrong in them ends the request. */
export class Interceptors {
  readonly #deps: InterceptorsDeps;

  constructor(deps: InterceptorsDeps) {
    this.#deps = deps;
  }

  /** Answers a message by `serve`, with the interceptors of the gateway before and behind it. */
  async around(
    gateway: Gateway,
    message: Intercepted,
    serve: (body: JsonObject, headers: Record<string, string>) => Promise<Response>,
  ): Promise<Response> {
    try {
      const outcome = await this.#request(gateway, message);
      if ('answer' in outcome) return responseOf(await this.#response(gateway, message, outcome.answer));
      const { body, headers } = outcome;
      const answer = await serve(body, headers);
      // A stream of change notifications has no end.
      if (interceptorsAt(gateway, 'RESPONSE').length === 0 || body.method === 'subscriptions/listen') return answer;
      const whole = await wholeAnswer(answer);
      const said = { status: answer.status, headers: Object.fromEntries(answer.headers), body: whole };
      return responseOf(whole === undefined ? said : await this.#response(gateway, { ...message, body }, said));
    } catch (error) {
      if (!(error instanceof InterceptorFailure)) throw error;
      return responseOf(failureAnswer(gateway, message.body, error));
    }
  }

  async #request(gateway: Gateway, message: Intercepted): Promise<RequestOutcome> {
    let { body } = message;
    let headers: Record<string, string> = {};
    for (const interceptor of interceptorsAt(gateway, 'REQUEST')) {
      const event = requestPart(interceptor, { ...message, body });
      const { transformedGatewayRequest: request, transformedGatewayResponse: response } = await this.#invoke(
        ...([gateway, interceptor, event, message] as const),
      );
      if (isObject(response)) return { answer: answerOf(response, undefined) };
      if (!isObject(request)) continue;
      const { body: changed = body } = request;
      if (!isObject(changed)) throw new InterceptorFailure('it gives a body that is not a message');
      body = changed;
      headers = { ...headers, ...requestHeaders(request.headers) };
    }
    return { body, headers };
  }

  async #response(gateway: Gateway, message: Intercepted, answer: InterceptedAnswer): Promise<InterceptedAnswer> {
    let said = answer;
    for (const interceptor of interceptorsAt(gateway, 'RESPONSE')) {
      const hidden = interceptor.inputConfiguration?.payloadFilter?.exclude.some(
        ({ field }) => field === 'RESPONSE_BODY',
      );
      const { status: statusCode, headers, body = null } = said;
      const gatewayResponse = { statusCode, headers, body: hidden ? null : body };
      const event = { ...requestPart(interceptor, message), gatewayResponse };
      const { transformedGatewayResponse: response } = await this.#invoke(gateway, interceptor, event, message);
      if (isObject(response)) said = answerOf(response, said);
    }
    return said;
  }

  async #invoke(
    gateway: Gateway,
    { interceptor }: control.GatewayInterceptorConfiguration,
    mcp: JsonObject,
    { caller, signal }: Intercepted,
  ): Promise<JsonObject> {
    const arn = interceptor.lambda?.arn ?? '';
    const { functions, roleMay, log } = this.#deps;
    const { requestId } = caller;
    try {
      const payload = { interceptorInputVersion: VERSION, mcp };
      const answer = await functions.invoke({ arn, payload, signal, caller: gatewayRole(gateway, roleMay) });
      if (answer.outcome === 'failed')
        throw new InterceptorFailure(`it failed with ${answer.errorType}: ${answer.errorMessage}`);
      return outputOf(answer.value);
    } catch (error) {
      signal.throwIfAborted();
      log.warn({ err: error, requestId, gateway: gateway.id, arn }, 'an interceptor failed, and the request with it');
      if (error instanceof InterceptorFailure) throw error;
      if (error instanceof ServiceError) throw new InterceptorFailure(error.message, { cause: error });
      throw error;
    }
  }
}

/** An interceptor could not be asked, or answered what is no answer. */
class InterceptorFailure extends Error {
  override readonly name = 'InterceptorFailure';

  /** Set where there are too many events for it at this time. */
  get busy(): ServiceError | undefined {
    const { cause } = this;
    return cause instanceof ServiceError && cause.code === 'ThrottlingException' ? cause : undefined;
  }
}

/** What a client is told of it: why, only where the owner wants that told. */
function failureAnswer({ definition }: Gateway, body: JsonObject, failure: InterceptorFailure): InterceptedAnswer {
  const debug = definition.exceptionLevel === 'DEBUG';
  const { busy } = failure;
  const problem = `An interceptor of the gateway ${busy ? 'is busy' : 'fails'}`;
  const message = debug ? `${problem}: ${failure.message}` : `${problem}.`;
  const code = busy ? JSON_RPC_CODES.refused : JSON_RPC_CODES.internalError;
  return {
    status: busy ? 429 : 500,
    headers: busy ? { 'retry-after': String(Math.ceil(busy.retryAfterSeconds ?? 1)) } : {},
    body: errorMessage({ code, message }, body),
  };
}

function requestPart(
  { inputConfiguration }: control.GatewayInterceptorConfiguration,
  { body, rawBody, path, caller }: Intercepted,
): JsonObject {
  const headers = inputConfiguration?.passRequestHeaders ? { headers: interceptorHeaders(caller.headers) } : {};
  return {
    rawGatewayRequest: { body: rawBody },
    gatewayRequest: { path, httpMethod: 'POST', ...headers, body },
  };
}

function outputOf(value: DocumentValue): JsonObject {
  if (!isObject(value) || value.interceptorOutputVersion !== VERSION)
    throw new InterceptorFailure(`it does not answer with interceptorOutputVersion ${VERSION}`);
  if (!isObject(value.mcp)) throw new InterceptorFailure('its answer has no member mcp');
  if (isDeeperThan(value.mcp, MOST_DEPTH))
    throw new InterceptorFailure(`its answer is nested deeper than ${MOST_DEPTH} levels`);
  return value.mcp;
}

/** What is not said stays as it was. */
function answerOf(said: JsonObject, before: InterceptedAnswer | undefined): InterceptedAnswer {
  const { statusCode = before?.status ?? 200, body } = said;
  if (typeof statusCode !== 'number' || !Number.isInteger(statusCode) || statusCode < 200 || statusCode > 599)
    throw new InterceptorFailure('it gives a statusCode that is none');
  return {
    status: statusCode,
    headers: { ...before?.headers, ...answerHeaders(said.headers) },
    body: body === undefined || body === null ? before?.body : body,
  };
}

/** Answers of these have no body, whatever an interceptor says. */
const WITHOUT_BODY: readonly number[] = [204, 205, 304];

function responseOf({ status, headers, body }: InterceptedAnswer): Response {
  const { 'content-type': _, ...rest } = headers;
  if (body === undefined || WITHOUT_BODY.includes(status)) return new Response(null, { status, headers: rest });
  return new Response(JSON.stringify(body), { status, headers: { ...rest, 'content-type': 'application/json' } });
}
