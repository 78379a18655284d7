import { errors, ownErrors, ServiceError } from '@agentplatform/contract';
import type { Dispatcher } from 'undici';
import { type Passing, PushBody, requestUpstream, type UpstreamResponse } from '../../../kernel/http/index.ts';
import { asOutboundError, type Outbound, OutboundError } from '../../../kernel/outbound/index.ts';
import { CALL_MS } from '../call-times.ts';
import { gatewayErrors } from '../error-kinds.ts';
import { createMask } from '../http-tools/index.ts';
import type { TargetGuard } from '../outbound/target-guard.ts';
import type { LiveTarget } from '../targets/target.ts';
import { ToolError } from '../tool-error.ts';

const failures = ownErrors(gatewayErrors);

export interface BackendRequestsDeps {
  /** The guard: who makes a target names addresses. */
  outbound: Pick<Outbound, 'dispatcher' | 'trusting'>;
  guard: Pick<TargetGuard, 'run'>;
}

/** What a backend is asked. */
export interface BackendRequest {
  url: URL;
  method: string;
  headers: Readonly<Record<string, string>>;
  body: Passing['body'];
  /** What of its answer nobody may read. */
  secrets: readonly string[];
}

/** Redirects lead to addresses that nobody named. */
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Sends requests of traffic to the servers behind targets, once each. Bodies stream both ways; a client that goes away ends its request there. */
export class BackendRequests {
  readonly #deps: BackendRequestsDeps;

  constructor(deps: BackendRequestsDeps) {
    this.#deps = deps;
  }

  /** Resolves with the head of the answer. Rejects with BadGatewayException, GatewayTimeoutException and ServiceUnavailableException. `own`: another way out. */
  async send(
    request: BackendRequest,
    target: LiveTarget,
    { onGone, signal, span }: Pick<Passing, 'onGone' | 'signal' | 'span'>,
    own?: Dispatcher,
  ): Promise<UpstreamResponse> {
    const attempt = span.child('GatewayTarget', 'client');
    attempt.set('gateway.target', target.name);
    const head = Promise.withResolvers<UpstreamResponse>();
    // A place of the target is held until the answer has ended.
    const running = this.#deps.guard.run(target, async (answered) => {
      const answer = await this.#ask(request, target, { onGone, signal }, own);
      answered();
      const settled = Promise.withResolvers<void>();
      answer.body.onSettled(settled.resolve);
      head.resolve(answer);
      await settled.promise;
    });
    running.catch(head.reject).finally(() => attempt.end());
    try {
      const answer = await head.promise;
      attempt.set('http.response.status_code', answer.status);
      return this.#read(answer, request, target);
    } catch (error) {
      const failure = failureOf(error, target);
      attempt.fail(failure instanceof ServiceError ? failure.code : undefined);
      throw failure;
    }
  }

  async #ask(
    { url, method, headers, body }: BackendRequest,
    { live: { certificateAuthority: ca } }: LiveTarget,
    { onGone, signal }: Pick<Passing, 'onGone' | 'signal'>,
    own: Dispatcher | undefined,
  ): Promise<UpstreamResponse> {
    // Sockets that believe more than others do are nobody else's.
    const trusting = ca === undefined ? undefined : this.#deps.outbound.trusting(ca);
    const end = (): void => void trusting?.destroy();
    try {
      const options: Dispatcher.DispatchOptions = {
        ...{ origin: url.origin, path: `${url.pathname}${url.search}`, headers, body: body ?? null },
        // What Fastify has routed.
        method: method as Dispatcher.HttpMethod,
        ...{ headersTimeout: CALL_MS, bodyTimeout: CALL_MS },
      };
      const answer = await requestUpstream(
        own ?? trusting?.dispatcher ?? this.#deps.outbound.dispatcher,
        options,
        onGone,
      );
      answer.body.onSettled(end);
      return answer;
    } catch (error) {
      end();
      // That says nothing about the server.
      if (signal.aborted) throw new Error('nobody waits for the answer any more', { cause: error });
      throw asOutboundError(error) ?? connectionError(error, url);
    }
  }

  #read(answer: UpstreamResponse, { secrets }: BackendRequest, { name }: LiveTarget): UpstreamResponse {
    const { status, headers, body } = answer;
    const refuse = (why: string): never => {
      body.cancel(new Error(why));
      throw failures.BadGatewayException(`The server behind the target ${name} ${why}.`);
    };
    if (REDIRECTS.has(status))
      refuse('redirects, and a gateway follows nobody; give the right address as the endpoint');
    if (status > 599) refuse(`answered with the status ${status}, which HTTP does not know`);
    if (secrets.length === 0) return answer;
    const encoding = String(headers['content-encoding'] ?? '').trim();
    if (encoding !== '' && encoding.toLowerCase() !== 'identity')
      refuse('encodes its answer although it was not asked to; a credential in it could not be hidden');
    const mask = createMask(secrets);
    const masked = Object.entries(headers).map(([header, value]) => [
      header,
      Array.isArray(value) ? value.map(mask.text) : value && mask.text(value),
    ]);
    return { status, headers: Object.fromEntries(masked), body: maskedBody(body, mask.parts) };
  }
}

/** As long as what it hides something of. */
function maskedBody(body: PushBody, parts: (of: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>): PushBody {
  const masked = PushBody.from(ReadableStream.from(parts(body)));
  // Whoever waits for its next part hears of no end of this one.
  masked.onSettled(() => body.cancel(new Error('the client went away')));
  return masked;
}

function connectionError(error: unknown, { host }: URL): Error {
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  if (code === 'UND_ERR_HEADERS_TIMEOUT')
    return new OutboundError('TIMEOUT', `${host} did not begin its answer within ${CALL_MS} ms`);
  const detail = code === undefined ? '' : ` (${code})`;
  return new OutboundError('CONNECTION_FAILED', `the call to ${host} failed${detail}`, { cause: error });
}

function failureOf(error: unknown, { name }: LiveTarget): unknown {
  if (error instanceof OutboundError && error.code === 'TIMEOUT')
    return failures.GatewayTimeoutException(`The target ${name} is too slow: ${error.message}.`, { cause: error });
  if (error instanceof OutboundError)
    return failures.BadGatewayException(`The target ${name} cannot be reached: ${error.message}.`, { cause: error });
  if (error instanceof ToolError) return errors.unavailable(error.message, { cause: error, retryAfterSeconds: 1 });
  return error;
}
