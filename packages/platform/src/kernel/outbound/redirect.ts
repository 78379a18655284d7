import type { Readable } from 'node:stream';
import { OutboundError } from './errors.ts';

export type OutboundBody = string | Uint8Array | Readable | undefined;

/** One hop of a call; headers are lower-case. */
export interface Hop {
  url: URL;
  method: string;
  headers: Record<string, string>;
  body: OutboundBody;
}

/** What may follow a redirect to another origin; any other header could be a credential under a name of its own. */
const CROSS_ORIGIN_HEADERS = new Set(['accept', 'accept-encoding', 'accept-language', 'content-type', 'user-agent']);

export function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

/**
 * The next hop after an answer with a Location (RFC 9110 section 15.4, method rules as browsers apply them).
 * The caller judges the new URL like the first. Throws `REDIRECT_REFUSED`, `BODY_NOT_REPLAYABLE`.
 */
export function followRedirect(hop: Hop, status: number, location: string): Hop {
  let url: URL;
  try {
    url = new URL(location, hop.url);
  } catch {
    throw new OutboundError('REDIRECT_REFUSED', `redirected to "${location.slice(0, 200)}", which is not a URL`);
  }
  if (hop.url.protocol === 'https:' && url.protocol === 'http:') {
    throw new OutboundError('REDIRECT_REFUSED', `redirected from https to plain http at ${url.host}`);
  }
  url.hash = '';
  const toGet =
    (status === 303 && hop.method !== 'HEAD') || ((status === 301 || status === 302) && hop.method === 'POST');
  const keepsBody = !toGet && hop.body !== undefined;
  if (keepsBody && typeof hop.body !== 'string' && !(hop.body instanceof Uint8Array)) {
    throw new OutboundError('BODY_NOT_REPLAYABLE', 'redirected while sending a stream, which cannot be sent twice');
  }
  const sameOrigin = url.origin === hop.url.origin;
  const headers = Object.fromEntries(
    Object.entries(hop.headers).filter(
      ([name]) => (sameOrigin || CROSS_ORIGIN_HEADERS.has(name)) && !(toGet && name.startsWith('content-')),
    ),
  );
  return { url, method: toGet ? 'GET' : hop.method, headers, body: keepsBody ? hop.body : undefined };
}
