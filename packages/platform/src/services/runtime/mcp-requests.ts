import type { IncomingMessage } from 'node:http';
import { errors } from '@agentplatform/contract';
import {
  type Passing,
  type PassRequest,
  type PassService,
  PushBody,
  type Resources,
  requestUpstream,
  type UpstreamResponse,
} from '../../kernel/http/index.ts';
import type { SessionKey } from '../../kernel/sessions/index.ts';
import type { TraceContext } from '../../kernel/telemetry/index.ts';
import { agentHeaders } from './agent-headers.ts';
import { agentSpan, endWith, held } from './agent-span.ts';
import type { InvocationTarget, RuntimeCatalogue } from './catalogue.ts';
import { ANSWERED, SESSION_HEADER, USER_HEADER } from './container-headers.ts';
import { findTarget, namedArns, runtimeIdOf } from './invocation-target.ts';
import { explain, goneMeanwhile, type InvokeDeps, whenRead } from './invoke.ts';
import { type McpSession, readMcpSession, writeMcpSession } from './mcp-session.ts';
import { routeOf } from './protocols.ts';
import { requireSigned } from './require-signed.ts';
import { requireToken } from './require-token.ts';
import type { RuntimeSocketsDeps } from './websocket/runtime-sockets.ts';

export interface McpRequestsDeps
  extends Pick<InvokeDeps, 'sessions' | 'tokens' | 'after' | 'limits'>,
    Pick<RuntimeSocketsDeps, 'catalogue' | 'verifyToken' | 'takeInvocation' | 'region'> {
  catalogue: RuntimeCatalogue;
}

/** A request as far as it can be read before anybody has said who sent it. */
interface McpRequest extends McpSession {
  agentRuntimeArn: string;
  qualifier: string | undefined;
  accountId: string | undefined;
  /** Named as a runtime session, which may hold several sessions of MCP; else it came within the id of the one. */
  named: boolean;
}

const PATH = '/runtimes/:runtime/invocations';
const MCP_SESSION = 'mcp-session-id';

/**
 * What MCP asks of a server beside POST (Streamable HTTP, "Listening for Messages from the Server", "Session Management"): GET opens the stream
 * of the server's own messages, DELETE ends a session. Neither starts one. A session that the platform has made for a session of MCP ends with
 * its sandbox; where the caller has named the runtime session, the agent ends its own session in there.
 */
export class McpRequests implements PassService {
  readonly operation = 'InvokeAgentRuntime';
  readonly urls = [PATH, `${PATH}/`];
  readonly methods = ['GET', 'DELETE'];
  readonly #deps: McpRequestsDeps;

  constructor(deps: McpRequestsDeps) {
    this.#deps = deps;
  }

  read(req: IncomingMessage): PassRequest {
    const { region, catalogue, verifyToken } = this.#deps;
    const request = readRequest(req);
    const { authorization = '' } = req.headers;
    const token = /^bearer /i.test(authorization) ? authorization.slice(7).trim() : undefined;
    // Judged by the token's check and asked: one and the same, whatever is deployed between the two.
    let target: Promise<InvocationTarget> | undefined;
    const find = ([arn]: Resources): Promise<InvocationTarget> => {
      target ??= Promise.resolve(findTarget(arn, request.qualifier, catalogue));
      return target;
    };
    const stops = req.method === 'DELETE' && !request.named;
    return {
      operation: stops ? 'StopRuntimeSession' : this.operation,
      headersToVerify: req.rawHeaders,
      resources: (accountId) => namedArns(request, accountId === undefined ? { region } : { region, accountId }),
      bearer:
        token === undefined ? undefined : async (resources) => verifyToken(await find(resources), token, req.headers),
      pass: async (passing) => this.#pass(passing, request, await find(passing.resources)),
    };
  }

  async #pass(passing: Passing, request: McpRequest, target: InvocationTarget): Promise<UpstreamResponse> {
    const { req, principal, signedHeaders } = passing;
    requireToken({ principal }, target);
    requireSigned({ headers: req.headers, signedHeaders }, target.headerAllowlist);
    if (target.version.protocol !== 'MCP')
      return notAllowed(`${target.runtime.id} is not an MCP server: it accepts only POST.`);
    if (request.runtimeSessionId === undefined) {
      if (req.method === 'GET') return notAllowed('There is no stream without a session.');
      throw errors.validation('The request names no session to end.', {
        remedy: 'Send the Mcp-Session-Id of the answers.',
      });
    }
    this.#deps.takeInvocation(target.endpoint.arn);
    const { accountId, arn: resourceArn } = target.runtime;
    const key = { accountId, resourceArn, sessionId: request.runtimeSessionId };
    if (req.method === 'GET' || request.named) return this.#send(passing, request, target, key);
    if (!(await this.#deps.sessions.stop(key))) throw gone(key);
    return { status: 204, headers: {}, body: PushBody.of('') };
  }

  async #send(
    passing: Passing,
    request: McpRequest,
    target: InvocationTarget,
    key: SessionKey,
  ): Promise<UpstreamResponse> {
    const { sessions, limits } = this.#deps;
    const session = await sessions.find(key);
    const lease = session && sessions.tryAcquire(key);
    if (!lease) throw gone(key);
    const span = agentSpan(passing.span, 'invoke_agent', target, lease);
    try {
      const answer = await requestUpstream(
        lease.connection,
        {
          method: passing.req.method ?? 'GET',
          path: routeOf(target.version).path,
          headers: this.#headers(passing, request, target, { sessionId: key.sessionId, trace: span.context }),
          headersTimeout: limits.timeoutMs,
        },
        passing.onGone,
        () => goneMeanwhile(lease, lease.session.row.port),
      );
      if (answer.status >= 300 && answer.status < 400) {
        answer.body.cancel(new Error('a redirect leads nowhere'));
        throw errors.runtimeClient(`The agent answered with status ${answer.status}.`);
      }
      span.set('http.response.status_code', answer.status);
      return {
        ...answer,
        headers: answered(answer, request, key.sessionId),
        body: whenRead(answer, held(lease, span), this.#deps),
      };
    } catch (error) {
      lease.release();
      const explained = await explain(error, lease, passing.signal);
      endWith(span, explained);
      throw explained;
    }
  }

  /** Nobody is asked here whether the caller may name a user, so that he names none. */
  #headers(
    { req, principal, requestId }: Passing,
    { own }: McpRequest,
    target: InvocationTarget,
    asked: { sessionId: string; trace: TraceContext | undefined },
  ) {
    const headers = { ...req.headers, [USER_HEADER]: undefined, [MCP_SESSION]: own };
    const ids = { ...asked, tokens: this.#deps.tokens, requestId };
    const sent = agentHeaders(target, { principal, headers }, ids);
    const last = req.headers['last-event-id'];
    return typeof last === 'string' ? [...sent, 'last-event-id', last] : sent;
  }
}

/** Throws ValidationException. */
function readRequest(req: IncomingMessage): McpRequest {
  const url = new URL(req.url ?? '/', 'http://localhost');
  const [, , runtime = ''] = url.pathname.split('/');
  const headers = { session: req.headers[SESSION_HEADER], mcp: req.headers[MCP_SESSION] };
  const mcp = typeof headers.mcp === 'string' ? headers.mcp : undefined;
  const named = typeof headers.session === 'string' ? headers.session : undefined;
  return {
    agentRuntimeArn: decoded(runtime),
    qualifier: url.searchParams.get('qualifier') ?? undefined,
    accountId: url.searchParams.get('accountId') ?? undefined,
    named: named !== undefined,
    ...(named === undefined ? readMcpSession(mcp) : { runtimeSessionId: named, own: mcp }),
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw errors.invalidField('agentRuntimeArn', 'is not valid percent encoding');
  }
}

function answered({ headers }: UpstreamResponse, request: McpRequest, sessionId: string): UpstreamResponse['headers'] {
  const kept: UpstreamResponse['headers'] = {
    'cache-control': 'no-store',
    [SESSION_HEADER]: sessionId,
    allow: headers.allow,
    'content-type': headers['content-type'],
    'content-length': headers['content-length'],
  };
  for (const name of ANSWERED) kept[name] = headers[name];
  const own = headers[MCP_SESSION];
  if (!request.named) kept[MCP_SESSION] = writeMcpSession(sessionId, typeof own === 'string' ? own : request.own);
  return kept;
}

/** As the protocol has it for a server without a stream, and HTTP for a resource without that method. */
function notAllowed(message: string): UpstreamResponse {
  const text = JSON.stringify({ message });
  return { status: 405, headers: { allow: 'POST', 'content-type': 'application/json' }, body: PushBody.of(text) };
}

/** MCP clients begin a new session when they are told so. */
function gone({ resourceArn, sessionId }: SessionKey): Error {
  return errors.resourceNotFound(`${runtimeIdOf(resourceArn)} has no live session ${sessionId}.`, {
    remedy: 'It may have ended by itself; initialize a new one.',
  });
}
