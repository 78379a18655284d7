import type { FetchLike } from '@modelcontextprotocol/client';
import type { Outbound, OutboundResponse } from '../../../../kernel/outbound/index.ts';
import { WITHIN_CALL_MS } from '../../call-times.ts';
import { createMask } from '../../http-tools/index.ts';
import { BackendError } from '../../outbound/backend-error.ts';
import type { Credential } from '../../outbound/credential.ts';
import { currentExchange, type Exchange } from './exchange.ts';

export interface BackendFetchDeps {
  /** The guard: who makes a target names addresses. */
  outbound: Pick<Outbound, 'fetch'>;
  /** Of what belongs to no exchange, until one has shown a newer one. */
  credential: Credential;
  /** PEM of an authority that its certificates are believed by, beside the usual ones. */
  ca?: string | undefined;
  /** Told whether the answer to what is sent now is a stream of events. */
  onAnswer?(streams: boolean): void;
}

/** Limits of a request that belongs to no exchange, such as the end of a session. */
const ASIDE = { maxBytes: 64 * 1024, timeoutMs: 5_000 };
const WITHOUT_BODY = [204, 205, 304];

/** `fetch` as the client package has it, through the guard and with the credential. A redirect is refused where there is a credential. */
export function backendFetch({ outbound, credential: first, ca, onAnswer }: BackendFetchDeps): FetchLike {
  let newest = first;
  return async (input, init = {}) => {
    const headers = Object.fromEntries(new Headers(init.headers));
    const method = init.method ?? 'GET';
    // A stream of what nobody asked for is not held open: servers answer so where they offer none.
    if (method === 'GET' && headers['last-event-id'] === undefined) return new Response(null, { status: 405 });
    const exchange = currentExchange();
    newest = exchange?.credential ?? newest;
    const credential = newest;
    try {
      exchange?.countRequest();
      const body = typeof init.body === 'string' ? init.body : undefined;
      const all = { ...exchange?.headers, ...headers, ...credential.headers };
      const unsigned = { method, url: addressOf(input, credential, exchange), headers: all, body };
      const sent = (await credential.sign?.(unsigned)) ?? unsigned;
      const answer = await outbound.fetch(sent.url, {
        ...{ method, headers: sent.headers },
        ...(body !== undefined && { body }),
        ...boundsOf(exchange, init.signal ?? undefined),
        ...{ ca, redirects: 0 },
      });
      refuseRedirect(answer, credential);
      if (exchange) exchange.answered = answer.headers;
      const streams = /^\s*text\/event-stream(?:[;\s]|$)/i.test(String(answer.headers['content-type'] ?? ''));
      onAnswer?.(streams);
      return responseOf(answer, exchange, streams);
    } catch (error) {
      if (exchange) exchange.failure ??= error;
      throw error;
    }
  };
}

function addressOf(input: string | URL, { query }: Credential, exchange: Exchange | undefined): URL {
  const url = new URL(input);
  for (const [name, value] of exchange?.query ?? []) url.searchParams.append(name, value);
  for (const [name, value] of query) url.searchParams.set(name, value);
  return url;
}

function boundsOf(exchange: Exchange | undefined, signal: AbortSignal | undefined) {
  if (!exchange) return { ...ASIDE, ...(signal && { signal }) };
  const ends = signal ? AbortSignal.any([signal, exchange.signal]) : exchange.signal;
  return { signal: ends, timeoutMs: WITHIN_CALL_MS, maxBytes: exchange.bytesLeft };
}

function refuseRedirect({ status, headers, body }: OutboundResponse, { secrets }: Credential): void {
  const { location } = headers;
  if (status < 300 || status > 399 || typeof location !== 'string' || secrets.length === 0) return;
  body.destroy();
  const where = createMask(secrets).text(location.slice(0, 200));
  throw new BackendError(
    `The server redirects to ${where}. A credential goes to the endpoint alone; give the right address as the endpoint.`,
  );
}

function responseOf(
  { status, headers, body }: OutboundResponse,
  exchange: Exchange | undefined,
  streams: boolean,
): Response {
  if (status < 200 || status > 599) {
    body.destroy();
    throw new BackendError(`The server answered with the status ${status}, which HTTP does not know.`);
  }
  const told = new Headers();
  for (const [name, value] of Object.entries(headers))
    for (const one of value === undefined ? [] : [value].flat()) told.append(name, one);
  const empty = WITHOUT_BODY.includes(status);
  if (empty) body.destroy();
  return new Response(empty ? null : ReadableStream.from(counted(body, exchange, streams)), { status, headers: told });
}

async function* counted(
  body: AsyncIterable<Uint8Array>,
  exchange: Exchange | undefined,
  streams: boolean,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const part of body) {
      exchange?.countBytes(part.length);
      if (streams) exchange?.countLines(part);
      yield part;
    }
  } catch (error) {
    if (exchange) exchange.failure ??= error;
    throw error;
  }
}
