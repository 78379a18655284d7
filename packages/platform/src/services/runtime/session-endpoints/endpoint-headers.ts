import type { IncomingMessage } from 'node:http';
import { connectionOptions, HOP_BY_HOP } from '../../../kernel/hop-by-hop.ts';
import { INERT_HEADERS, mayRun, type UpstreamResponse } from '../../../kernel/http/index.ts';
import { isTraceHeader, type TraceContext, traceHeaders } from '../../../kernel/telemetry/index.ts';
import { SESSION_HEADER } from '../container-headers.ts';

/** Credentials, and what the platform and AWS mean by a header. */
const NOT_SENT = /^(?:authorization$|host$|x-amzn?-|amz-sdk-|x-agentplatform-|workloadaccesstoken$|oauth2callbackurl$)/;
/** Cookies that the platform keeps for itself. */
const OWN_COOKIE = /^(?:__Host-|__Secure-)?agentplatform/i;
/** Headers by which an answer changes what a browser thinks of the whole address, or speaks as the platform. */
const NOT_ANSWERED =
  /^(?:alt-svc|clear-site-data|strict-transport-security|service-worker-allowed|nel|report-to|reporting-endpoints|x-amzn-requestid|x-amzn-errortype|x-agentplatform-.*)$/;

/** A request without an `Authorization` header: its signature is in its URL, so that a browser may have sent it by itself. */
export function isPresigned({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers.authorization === undefined;
}

/**
 * What a server in a session is sent, as undici's flat list: everything but credentials, headers of the connection and those of AWS; cookies
 * only where a program has sent them. Where the request is traced, what it is a part of is said anew. `more` are names that are left out as well.
 */
export function sentHeaders(
  req: Pick<IncomingMessage, 'headers' | 'rawHeaders'>,
  session: { sessionId: string; port: number; trace?: TraceContext | undefined },
  more?: RegExp,
): string[] {
  const options = connectionOptions(req.headers.connection);
  const sent = ['host', `localhost:${session.port}`, SESSION_HEADER, session.sessionId];
  if (session.trace) sent.push(...traceHeaders(session.trace));
  for (let i = 0; i + 1 < req.rawHeaders.length; i += 2) {
    const [name = '', value = ''] = req.rawHeaders.slice(i, i + 2);
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || options.has(lower) || more?.test(lower)) continue;
    if (isTraceHeader(lower) ? session.trace : NOT_SENT.test(lower)) continue;
    const kept = lower === 'cookie' ? cookies(value, req) : value;
    if (kept !== '') sent.push(name, kept);
  }
  return sent;
}

function cookies(value: string, req: Pick<IncomingMessage, 'headers'>): string {
  if (isPresigned(req)) return '';
  return value
    .split(';')
    .filter((one) => !OWN_COOKIE.test(one.trim()))
    .join(';')
    .trim();
}

/**
 * What of an answer reaches the caller. A browser that has come by itself, with a presigned URL, runs nothing of it and keeps nothing: it would
 * be a page of the platform's own address. A program gets the page as it is, and no browser gets what a program was answered from its cache.
 */
export function answeredHeaders(
  { headers }: Pick<UpstreamResponse, 'headers'>,
  req: Pick<IncomingMessage, 'headers'>,
): UpstreamResponse['headers'] {
  const options = connectionOptions(headers.connection);
  const answered: UpstreamResponse['headers'] = {};
  for (const [name, value] of Object.entries(headers))
    if (!HOP_BY_HOP.has(name) && !options.has(name) && !NOT_ANSWERED.test(name)) answered[name] = value;
  answered.vary = [headers.vary ?? [], 'authorization'].flat();
  const setCookies = [headers['set-cookie'] ?? []].flat();
  delete answered['set-cookie'];
  if (!isPresigned(req)) {
    const theirs = setCookies.filter((one) => !OWN_COOKIE.test(one.trim()));
    return theirs.length === 0 ? answered : { ...answered, 'set-cookie': theirs };
  }
  const type = headers['content-type'];
  return mayRun(typeof type === 'string' ? type : undefined) ? { ...answered, ...INERT_HEADERS } : answered;
}
