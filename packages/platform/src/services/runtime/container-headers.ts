import type { IncomingHttpHeaders } from 'node:http';
import { errors } from '@agentplatform/contract';
import { CARRIED_SESSION_HEADER, WORKLOAD_TOKEN_HEADERS } from '../../kernel/auth/index.ts';
import { isTraceHeader, TRACE_HEADERS, type TraceContext, traceHeaders } from '../../kernel/telemetry/index.ts';

export const SESSION_HEADER = 'x-amzn-bedrock-agentcore-runtime-session-id';
export const USER_HEADER = 'x-amzn-bedrock-agentcore-runtime-user-id';
const REQUEST_HEADER = 'x-amzn-bedrock-agentcore-runtime-request-id';
export const CUSTOM_PREFIX = 'x-amzn-bedrock-agentcore-runtime-custom-';

/** Request headers that reach every container as they came. */
const PASSED = [
  'content-type',
  'accept',
  'mcp-session-id',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'a2a-version',
  'a2a-extensions',
  USER_HEADER,
];

/** Response headers of a container that reach the client. */
export const ANSWERED = ['mcp-session-id', 'mcp-protocol-version', ...TRACE_HEADERS] as const;

/** Headers that no allowlist may open: they carry the caller's credentials to the platform or steer the connection. */
const NEVER = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'keep-alive',
  'te',
  'trailer',
  'proxy-authorization',
  'proxy-connection',
  'expect',
  'x-amz-security-token',
  'x-amz-date',
  'x-amz-content-sha256',
]);

const CALLBACK_HEADER = 'oauth2callbackurl';
/** What the platform itself says to an agent; a caller who could set them would speak for it. */
const PLATFORMS_OWN = new Set(['workloadaccesstoken', CALLBACK_HEADER, CARRIED_SESSION_HEADER]);
/** Of the AWS APIs and their SDKs. */
const AWS = /^(x-amzn?-|amz-sdk-)/;

/** Of all that a container gets, names included: the servers of agents take 16 KB as a rule, with the first line and the headers of the connection. */
const MOST_BYTES = 15_872;

export interface ContainerRequest {
  headers: IncomingHttpHeaders;
  sessionId: string;
  requestId: string;
  /** Says who the agent is, and which user it works for. */
  workloadToken: string;
  /** Where the agent may have a user sent back to who has consented. */
  callbackUrl: string | undefined;
  /** Names that the runtime's requestHeaderAllowlist opens. */
  allowlist: readonly string[];
  /** What the request is a part of; where nothing is traced, absent, and what the caller says of it goes on as it came. */
  trace?: TraceContext | undefined;
  /** True when the caller came with a bearer token: only then can an allowlist pass `Authorization` on. */
  bearer: boolean;
}

/**
 * The headers that a container gets, as undici's flat list (COMPATIBILITY 1, "Headers that reach the container"): session and
 * request id, workload access token, callback address, content and trace headers, `…-Runtime-Custom-*`, and what the allowlist names. A SigV4
 * Authorization header never. Throws ValidationException for more than the servers of agents take.
 */
export function containerHeaders(request: ContainerRequest): string[] {
  const { headers, sessionId, requestId, workloadToken, callbackUrl, trace, allowlist, bearer } = request;
  const list = [SESSION_HEADER, sessionId, REQUEST_HEADER, requestId];
  for (const name of WORKLOAD_TOKEN_HEADERS) list.push(name, workloadToken);
  if (callbackUrl !== undefined) list.push(CALLBACK_HEADER, callbackUrl);
  for (const name of PASSED) {
    const value = headers[name];
    if (typeof value === 'string') list.push(name, value);
  }
  if (trace) list.push(...traceHeaders(trace));
  else
    for (const name of TRACE_HEADERS) {
      const value = headers[name];
      if (typeof value === 'string') list.push(name, value);
    }
  for (const name in headers) {
    if (!name.startsWith(CUSTOM_PREFIX)) continue;
    const value = headers[name];
    if (typeof value === 'string') list.push(name, value);
  }
  for (const allowed of allowlist) {
    const name = allowed.toLowerCase();
    if (name.startsWith(CUSTOM_PREFIX) || PASSED.includes(name) || isTraceHeader(name) || !mayPass(name, bearer))
      continue;
    const value = headers[name];
    if (typeof value === 'string') list.push(name, value);
  }
  refuseLong(list);
  return list;
}

function refuseLong(list: readonly string[]): void {
  // Each line has a colon, a space and its end.
  const bytes = list.reduce((sum, text) => sum + text.length + 2, 0);
  if (bytes > MOST_BYTES)
    throw errors.validation(`The headers for the agent have ${bytes} bytes. Together they may have ${MOST_BYTES}.`, {
      remedy: 'Send fewer or shorter headers of those that reach the agent, or a bearer token with fewer claims.',
    });
}

function mayPass(name: string, bearer: boolean): boolean {
  if (name === 'authorization') return bearer;
  return !NEVER.has(name) && !PLATFORMS_OWN.has(name) && !AWS.test(name);
}

/** Why a name cannot stand in a requestHeaderAllowlist, or undefined when it can. */
export function allowlistProblem(allowed: string): string | undefined {
  const name = allowed.toLowerCase();
  if (name.startsWith(CUSTOM_PREFIX) || name === 'authorization') return undefined;
  if (NEVER.has(name))
    return 'is a header of the connection or of the request signature, which never reaches a container';
  if (PLATFORMS_OWN.has(name)) return 'is a header of the platform itself, which no caller may set';
  if (AWS.test(name)) return `belongs to AWS and its SDKs; of those only ${CUSTOM_PREFIX}* can be passed on`;
  return undefined;
}
