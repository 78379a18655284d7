import { Readable } from 'node:stream';
import type { Outbound } from './outbound.ts';

/** What one call of a model may take. */
export interface CallLimits {
  /** Whole answer, bytes. */
  maxBytes: number;
  /** Whole call, milliseconds. */
  timeoutMs: number;
}

/** Statuses whose answers have no body by definition. */
const BODILESS = [204, 205, 304];

/** `fetch` for a client library, by the operator's way out. It follows no redirect: the key is for the service that was named alone. */
export function outboundFetch(outbound: Pick<Outbound, 'fetch'>, limits: CallLimits): typeof fetch {
  return async (input, { method = 'GET', headers, body, signal } = {}) => {
    if (input instanceof Request || (typeof body !== 'string' && body !== undefined && body !== null))
      throw new TypeError('a client library asks with texts alone');
    const answer = await outbound.fetch(input, {
      ...limits,
      method,
      headers: Object.fromEntries(new Headers(headers)),
      ...(typeof body === 'string' ? { body } : {}),
      redirects: 0,
      ...(signal ? { signal } : {}),
    });
    try {
      if (BODILESS.includes(answer.status)) {
        answer.body.destroy();
        return new Response(null, { status: answer.status });
      }
      return new Response(Readable.toWeb(answer.body), { status: answer.status, headers: headersOf(answer.headers) });
    } catch (error) {
      // A status or a header that nobody may send.
      answer.body.destroy();
      throw error;
    }
  };
}

function headersOf(given: Record<string, string | string[] | undefined>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given)) if (value !== undefined) headers.set(name, String(value));
  return headers;
}
