import { Readable } from 'node:stream';
import { type data, errors, ServiceError, type StreamingBlob } from '@agentplatform/contract';
import { type PushBody, RequestBody, requestUpstream, type UpstreamResponse } from '../../kernel/http/index.ts';
import type { RequestContext } from '../../kernel/service.ts';
import { describeExit, exitedSoon, type Lease, type SessionPlan, type Sessions } from '../../kernel/sessions/index.ts';
import { agentHeaders } from './agent-headers.ts';
import { agentSpan, endWith, held } from './agent-span.ts';
import type { AgentTokens } from './agent-tokens.ts';
import type { InvocationTarget } from './catalogue.ts';
import { EventSize } from './event-size.ts';
import { listens } from './listens.ts';
import { readMcpSession, writeMcpSession } from './mcp-session.ts';
import { routeOf } from './protocols.ts';
import { endpointUrl } from './session-endpoints/endpoint-address.ts';

export interface InvokeDeps {
  sessions: Sessions;
  tokens: AgentTokens;
  planFor(target: InvocationTarget): Promise<SessionPlan>;
  newSessionId(): string;
  /** `Clock.after`. */
  after(ms: number, run: () => void): () => void;
  limits: { timeoutMs: number; streamTimeoutMs: number; eventBytes: number };
}

/** How much of an agent's own error message is shown. */
const ERROR_TEXT_BYTES = 2048;

/** InvokeAgentRuntime: finds or starts the session, hands the request to its sandbox and the answer back, part by part. */
export async function invoke(
  target: InvocationTarget,
  input: data.InvokeAgentRuntimeRequest,
  ctx: RequestContext,
  deps: InvokeDeps,
): Promise<data.InvokeAgentRuntimeResponse> {
  // Only a client of MCP that does not say which session it means is told by another id than the agent's own.
  const mcp =
    target.version.protocol === 'MCP' && input.runtimeSessionId === undefined
      ? readMcpSession(input.mcpSessionId)
      : undefined;
  const sessionId = input.runtimeSessionId ?? mcp?.runtimeSessionId ?? deps.newSessionId();
  const key = { accountId: target.runtime.accountId, resourceArn: target.runtime.arn, sessionId };
  const lease = deps.sessions.tryAcquire(key) ?? (await acquire(key, target, ctx, deps));
  const span = agentSpan(ctx.span, 'invoke_agent', target, lease);
  try {
    const caller = mcp ? { principal: ctx.principal, headers: { ...ctx.headers, 'mcp-session-id': mcp.own } } : ctx;
    const ids = { tokens: deps.tokens, sessionId, requestId: ctx.requestId, trace: span.context };
    const answer = await send(lease, target, input.payload, agentHeaders(target, caller, ids), ctx, deps);
    // A redirect leads nowhere: a caller reaches the agent by the platform alone.
    if (answer.status >= 300) throw await agentError(answer);
    span.set('http.response.status_code', answer.status);
    const response = respond(answer, sessionId, whenRead(answer, held(lease, span), deps));
    const address = sessionAddress(lease, target, ctx);
    if (address !== undefined) response.sessionEndpointUrl = address;
    if (mcp) response.mcpSessionId = writeMcpSession(sessionId, response.mcpSessionId ?? mcp.own);
    return response;
  } catch (error) {
    lease.release();
    const explained = await explain(error, lease, ctx.signal);
    endWith(span, explained);
    throw explained;
  }
}

/** Most characters of a session's address (model: `sessionEndpointUrl`). */
const MAX_ADDRESS_CHARS = 128;

/** Where the caller reaches the session itself; undefined where it opens no port, or no address fits. */
function sessionAddress(lease: Lease, target: InvocationTarget, ctx: RequestContext): string | undefined {
  const { openPorts, row } = lease.session;
  // What runs in a sandbox reaches the platform by a listener that leads to no session.
  const inside = ctx.principal.kind === 'iam' && ctx.principal.sandboxId !== undefined;
  if (openPorts.length === 0 || inside) return undefined;
  const address = endpointUrl(ctx.origin, { sandboxId: row.sandboxId, qualifier: target.endpoint.name });
  return address.length <= MAX_ADDRESS_CHARS ? address : undefined;
}

/** A live session's lease, or the wire's error for why there is none. */
export async function acquire(
  key: { accountId: string; resourceArn: string; sessionId: string },
  target: InvocationTarget,
  ctx: Pick<RequestContext, 'signal' | 'span'>,
  deps: Pick<InvokeDeps, 'sessions' | 'planFor'>,
): Promise<Lease> {
  return deps.sessions.acquire(key, () => deps.planFor(target), ctx.signal, ctx.span);
}

function send(
  lease: Lease,
  target: InvocationTarget,
  payload: StreamingBlob,
  headers: string[],
  ctx: RequestContext,
  deps: InvokeDeps,
): Promise<UpstreamResponse> {
  const length = payload instanceof RequestBody ? payload.length : undefined;
  // Simple servers read no body without a content-length, and parse no body without a content-type. boto3 sends no content-type by default. Such a body is
  // JSON, by the protocols of agents.
  const all = [...headers];
  if (length !== undefined) all.push('content-length', String(length));
  if (ctx.headers['content-type'] === undefined) all.push('content-type', 'application/json');
  const request = {
    method: 'POST',
    path: routeOf(target.version).path,
    headers: all,
    body: payload instanceof RequestBody ? payload.content : Readable.from(payload),
    headersTimeout: deps.limits.timeoutMs,
  } as const;
  return requestUpstream(
    lease.connection,
    request,
    (run) => ctx.onGone(run),
    () => goneMeanwhile(lease, lease.session.row.port),
  );
}

/** An error if the agent has exited, and so no longer listens. The kernel closes the listening socket before the accepted connections. */
export async function goneMeanwhile({ sandbox }: Lease, ofPort: number): Promise<Error | undefined> {
  const { host, port } = sandbox.address(ofPort);
  if (await listens(host, port)) return undefined;
  return new Error('the agent exited before its answer was whole');
}

function respond(
  answer: UpstreamResponse,
  runtimeSessionId: string,
  response: StreamingBlob,
): data.InvokeAgentRuntimeResponse {
  const header = (name: string): string | undefined => {
    const value = answer.headers[name];
    return typeof value === 'string' ? value : value?.[0];
  };
  return {
    runtimeSessionId,
    mcpSessionId: header('mcp-session-id'),
    mcpProtocolVersion: header('mcp-protocol-version'),
    traceId: header('x-amzn-trace-id'),
    traceParent: header('traceparent'),
    traceState: header('tracestate'),
    baggage: header('baggage'),
    contentType: header('content-type') ?? 'application/octet-stream',
    response,
    statusCode: answer.status,
  };
}

/** The body, which holds the session's lease until its last byte is read or it breaks, and which may not go on for ever. */
export function whenRead(answer: UpstreamResponse, lease: Lease, deps: Pick<InvokeDeps, 'after' | 'limits'>): PushBody {
  const { body } = answer;
  if (isEventStream(answer)) {
    const size = new EventSize(deps.limits.eventBytes);
    body.watch((part) => {
      if (!size.take(part))
        body.cancel(new Error(`an event of the answer is larger than ${deps.limits.eventBytes} bytes`));
    });
  }
  heldUntilRead(body, lease, deps);
  return body;
}

/** Holds the lease until the body is read or breaks, and ends one that goes on for too long. */
export function heldUntilRead(
  body: PushBody,
  lease: Lease,
  { after, limits }: Pick<InvokeDeps, 'after' | 'limits'>,
): void {
  if (body.settled) {
    lease.release();
    return;
  }
  const cancel = after(limits.streamTimeoutMs, () =>
    body.cancel(new Error(`the answer went on for more than ${limits.streamTimeoutMs / 1000} s`)),
  );
  body.onSettled(() => {
    cancel();
    lease.release();
  });
}

function isEventStream({ headers: { 'content-type': type } }: UpstreamResponse): boolean {
  return typeof type === 'string' && /^text\/event-stream\b/i.test(type);
}

/** An agent's own error answer as the wire's RuntimeClientError, with what it said. */
async function agentError(answer: UpstreamResponse): Promise<Error> {
  const said = (await answer.body.head(ERROR_TEXT_BYTES)).trim();
  return errors.runtimeClient(
    `The agent answered with status ${answer.status}${said ? `: ${said}` : ' and no message'}.`,
    {
      members: { agentStatusCode: answer.status },
    },
  );
}

/** What went wrong between platform and agent, as the wire's error with the cause named. */
export async function explain(error: unknown, lease: Lease, signal: AbortSignal): Promise<unknown> {
  if (error instanceof ServiceError || signal.aborted) return error;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'UND_ERR_HEADERS_TIMEOUT') {
    return errors.runtimeClient('The agent did not begin to answer in time.', {
      remedy: 'Answer sooner, stream, or work on in the background and report HealthyBusy to /ping.',
      cause: error,
    });
  }
  const { state } = lease.session;
  if (state === 'ending' || state === 'absent') {
    if ((await exitedSoon(lease.sandbox)) && lease.session.endReason === 'exited')
      return errors.runtimeClient(await describeExit(lease.sandbox), { cause: error });
    return errors.runtimeClient(
      `The session ended (${lease.session.endReason ?? 'stopped'}) before the agent answered.`,
      { cause: error },
    );
  }
  if (await exitedSoon(lease.sandbox)) return errors.runtimeClient(await describeExit(lease.sandbox), { cause: error });
  const why = error instanceof Error ? error.message : String(error);
  return errors.runtimeClient(`The connection to the agent broke before it answered: ${why}.`, { cause: error });
}
