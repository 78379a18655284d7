import type { IncomingMessage } from 'node:http';
import { errors } from '@agentplatform/contract';
import { CUSTOM_PREFIX, SESSION_HEADER } from '../container-headers.ts';
import { readCredentials, type StreamCredentials } from './credentials.ts';

/** A request to open a WebSocket, as far as it can be read before anybody has said who sent it. */
export interface StreamRequest extends StreamCredentials {
  kind: 'agent' | 'shell';
  /** ARN or id. */
  runtime: string;
  qualifier: string | undefined;
  accountId: string | undefined;
  sessionId: string | undefined;
  shellId: string | undefined;
  /** Headers of the agent that came as query parameters: a browser can set no others. */
  queryHeaders: Record<string, string>;
}

const PATH = /^\/runtimes\/([^/]+)\/ws(\/shells)?$/;
const SHELL_ID = /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}$/;

/** Reads a request to upgrade (COMPATIBILITY 1, "WebSocket"); undefined when its path is no stream. Throws ValidationException. */
export function readStreamRequest(req: IncomingMessage): StreamRequest | undefined {
  const url = req.url ?? '/';
  const at = url.indexOf('?');
  const match = PATH.exec(at < 0 ? url : url.slice(0, at));
  if (!match) return undefined;
  const query = new URLSearchParams(at < 0 ? '' : url.slice(at + 1));
  const queryHeaders: Record<string, string> = {};
  let sessionInQuery: string | undefined;
  for (const [name, value] of query) {
    const lower = name.toLowerCase();
    if (lower === SESSION_HEADER) sessionInQuery = value;
    else if (lower.startsWith(CUSTOM_PREFIX) && /^[\w-]+$/.test(lower) && isHeaderValue(value))
      queryHeaders[lower] = value;
  }
  const header = req.headers[SESSION_HEADER];
  // The query is always signed, the header not always.
  if (sessionInQuery !== undefined && header !== undefined && header !== sessionInQuery)
    throw errors.invalidField('runtimeSessionId', 'is another one in the header than in the query');
  const sessionId = (typeof header === 'string' ? header : undefined) ?? sessionInQuery;
  if (sessionId !== undefined && (sessionId.length < 33 || sessionId.length > 256 || !isHeaderValue(sessionId)))
    throw errors.invalidField('runtimeSessionId', 'must be 33 to 256 visible characters');
  const shellId = query.get('shellId') ?? undefined;
  if (shellId !== undefined && !SHELL_ID.test(shellId))
    throw errors.invalidField(
      'shellId',
      'must be 1 to 128 letters, digits, "-" or "_", and begin with a letter or digit',
    );
  return {
    kind: match[2] ? 'shell' : 'agent',
    runtime: decoded(match[1] ?? ''),
    qualifier: query.get('qualifier') ?? undefined,
    accountId: query.get('accountId') ?? undefined,
    sessionId,
    shellId,
    queryHeaders,
    ...readCredentials(req),
  };
}

/**
 * The headers to verify a signature with. The vendor's clients that sign in the header sign all but the session id of a stream, so an
 * unsigned one is left out there; a signed one is verified. A presigned URL has it in its query, and whoever is given one adds none.
 * Their shell repeats the very same Host, which says nothing new.
 */
export function headersForSignature(req: IncomingMessage): string[] {
  const { authorization } = req.headers;
  const signed = /SignedHeaders=([^,\s]*)/.exec(authorization ?? '')?.[1]?.split(';') ?? [];
  const kept: string[] = [];
  let host: string | undefined;
  for (let i = 0; i + 1 < req.rawHeaders.length; i += 2) {
    const [name = '', value = ''] = req.rawHeaders.slice(i, i + 2);
    const lower = name.toLowerCase();
    if (lower === SESSION_HEADER && authorization !== undefined && !signed.includes(SESSION_HEADER)) continue;
    if (lower === 'host' && value === host) continue;
    if (lower === 'host') host = value;
    kept.push(name, value);
  }
  return kept;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw errors.invalidField('agentRuntimeArn', 'is not valid percent encoding');
  }
}

function isHeaderValue(text: string): boolean {
  return /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text);
}
