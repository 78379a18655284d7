import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { untilAborted } from '../until-aborted.ts';
import { type AddressPolicy, ANYWHERE, createAddressPolicy } from './address-policy.ts';
import { createGuardedDispatcher, type GuardedDispatcher } from './dispatcher.ts';
import { asOutboundError, OutboundError } from './errors.ts';
import { followRedirect, type Hop, isRedirect, type OutboundBody } from './redirect.ts';
import { createGuardedResolve, type Resolve } from './resolver.ts';
import { boundedBody, readAll } from './response-body.ts';
import { createSystemResolve } from './system-resolve.ts';
import { checkTarget } from './target.ts';

export interface OutboundLimits {
  /** Whole call with its body, milliseconds. */
  timeoutMs: number;
  connectTimeoutMs: number;
  /** Decoded body, bytes. */
  maxBytes: number;
  redirects: number;
  connectionsPerOrigin: number;
  /** Origins that are remembered, with connections to them. */
  origins: number;
  /** Calls and look-ups of names under way at once, over all origins. */
  inFlight: number;
}

export const DEFAULT_OUTBOUND_LIMITS: OutboundLimits = {
  timeoutMs: 30_000,
  connectTimeoutMs: 10_000,
  maxBytes: 10_000_000,
  redirects: 5,
  connectionsPerOrigin: 64,
  origins: 1024,
  inFlight: 512,
};

/** 100 Continue, 103 Early Hints and their like before one answer; nobody here asks for any. */
const MOST_INTERIM = 16;

export interface OutboundDeps {
  /** CIDR ranges that are called although they are private or loopback (`--allow-private-egress`). */
  allowPrivate?: readonly string[];
  /** For addresses that the operator configured, who may name any. */
  anywhere?: boolean;
  clock: Clock;
  limits?: Partial<OutboundLimits>;
  /** Ports that may be called; any when absent. */
  ports?: readonly number[];
  resolve?: Resolve;
}

export interface OutboundRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: OutboundBody;
  signal?: AbortSignal;
  maxBytes?: number;
  timeoutMs?: number;
  /** PEM of authorities that are believed for this call alone, beside the usual ones. */
  ca?: string | undefined;
  /** Most redirects to follow; 0 gives the redirect itself as the answer. */
  redirects?: number;
}

export interface OutboundResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  /** Of the last hop. */
  url: string;
  /** Decoded and bounded; must be read to its end or destroyed. */
  body: Readable;
  bytes(): Promise<Buffer>;
  text(): Promise<string>;
  /** Also throws `OutboundError`, `BAD_JSON`. */
  json(): Promise<unknown>;
}

/** The way out to an address that a user supplied or the operator configured. Every failure is an `OutboundError` or the signal's own reason. */
export interface Outbound {
  fetch(url: string | URL, request?: OutboundRequest): Promise<OutboundResponse>;
  /** For clients that bring their own protocol on undici; it bounds addresses, not time or size. */
  dispatcher: Dispatcher;
  /** The same, which believes certificates of these authorities (PEM) beside the usual ones; whoever opens it ends it. */
  trusting(ca: string): GuardedDispatcher;
  /** Resolves and judges; whoever uses the result must connect to exactly these addresses. */
  resolve: Resolve;
  /** Judges a URL without resolving its name; for checks when an address is configured. */
  check(url: string | URL): URL;
  /** The same way out with a bound of its own of calls at once: whoever takes all of these takes none of the others'. */
  apart(): Outbound;
  /** Ends all connections, those of what is `apart` too. */
  close(): Promise<void>;
}

export function createOutbound(deps: OutboundDeps): Outbound {
  const limits = { ...DEFAULT_OUTBOUND_LIMITS, ...deps.limits };
  const addresses: AddressPolicy = deps.anywhere ? ANYWHERE : createAddressPolicy(deps.allowPrivate);
  const rules = { addresses, ports: deps.ports };
  const resolve = createGuardedResolve({
    resolve: deps.resolve ?? createSystemResolve(),
    addresses,
    clock: deps.clock,
    timeoutMs: limits.connectTimeoutMs,
  });
  const guarded = (ca?: string) => createGuardedDispatcher({ ...limits, addresses, resolve, ports: deps.ports, ca });
  const { dispatcher, destroy } = guarded();

  async function call(input: string | URL, request: OutboundRequest, via: Dispatcher): Promise<OutboundResponse> {
    let hop: Hop = {
      url: checkTarget(input, rules),
      method: (request.method ?? 'GET').toUpperCase(),
      headers: { 'accept-encoding': 'gzip, br', ...lowerCase(request.headers ?? {}) },
      body: request.body,
    };
    assertHeaders(hop);
    const timeoutMs = request.timeoutMs ?? limits.timeoutMs;
    const ending = new AbortController();
    const onAbort = (): void => ending.abort(request.signal?.reason);
    request.signal?.throwIfAborted();
    request.signal?.addEventListener('abort', onAbort, { once: true });
    const cancel = deps.clock.after(timeoutMs, () =>
      ending.abort(new OutboundError('TIMEOUT', `${hop.url.host} did not finish its answer within ${timeoutMs} ms`)),
    );
    const release = (): void => {
      cancel();
      request.signal?.removeEventListener('abort', onAbort);
    };
    try {
      const most = request.redirects ?? limits.redirects;
      for (let followed = 0; ; followed++) {
        const answer = await send(hop, via, ending);
        const location = answer.headers.location;
        if (most === 0 || !isRedirect(answer.statusCode) || typeof location !== 'string') {
          const { url } = hop;
          return respond(answer, url, request.maxBytes ?? limits.maxBytes, {
            release,
            explain: (error) => explain(error, url, ending.signal),
          });
        }
        answer.body.on('error', () => {}).destroy();
        if (followed === most) {
          throw new OutboundError('TOO_MANY_REDIRECTS', `${hop.url.host} redirected more than ${most} times`);
        }
        hop = followRedirect(hop, answer.statusCode, location);
        checkTarget(hop.url, rules);
      }
    } catch (error) {
      release();
      throw explain(error, hop.url, ending.signal);
    }
  }

  function send(hop: Hop, via: Dispatcher, ending: AbortController): Promise<Dispatcher.ResponseData> {
    let interim = 0;
    const answer = via.request({
      origin: hop.url.origin,
      path: hop.url.pathname + hop.url.search,
      method: hop.method as Dispatcher.HttpMethod,
      headers: hop.headers,
      body: hop.body ?? null,
      signal: ending.signal,
      onInfo: () => {
        if (++interim > MOST_INTERIM)
          ending.abort(
            new OutboundError('TOO_LARGE', `${hop.url.host} sent more than ${MOST_INTERIM} interim answers`),
          );
      },
    });
    return untilAborted(answer, ending.signal, ({ body }) => body.on('error', () => {}).destroy());
  }

  function open(): Outbound {
    let inFlight = 0;
    const begin = (): void => {
      if (inFlight >= limits.inFlight) throw new OutboundError('OVERLOADED', 'too many outgoing calls at once');
      inFlight++;
    };
    return {
      async fetch(url, request = {}) {
        begin();
        // Sockets that believe more than others do are nobody else's.
        const own = request.ca === undefined ? undefined : guarded(request.ca);
        const over = (): void => {
          inFlight--;
          void own?.destroy();
        };
        try {
          const answer = await call(url, request, own?.dispatcher ?? dispatcher);
          answer.body.once('close', over);
          return answer;
        } catch (error) {
          over();
          throw error;
        }
      },
      dispatcher,
      trusting: guarded,
      async resolve(hostname, signal) {
        begin();
        return resolve(hostname, signal).finally(() => inFlight--);
      },
      check: (url) => checkTarget(url, rules),
      apart: open,
      close: destroy,
    };
  }
  return open();
}

function respond(
  answer: Dispatcher.ResponseData,
  url: URL,
  maxBytes: number,
  { release, explain }: { release: () => void; explain: (error: unknown) => Error },
): OutboundResponse {
  const { 'content-encoding': encoding, ...headers } = answer.headers;
  let body: Readable;
  try {
    body = boundedBody(answer.body, Array.isArray(encoding) ? encoding.join(',') : encoding, maxBytes, explain);
  } catch (error) {
    answer.body.on('error', () => {}).destroy();
    throw error;
  }
  body.once('close', release);
  const bytes = (): Promise<Buffer> => readAll(body);
  return {
    status: answer.statusCode,
    // The length spoke of the encoded body.
    headers: encoding === undefined ? headers : { ...headers, 'content-length': undefined },
    url: url.href,
    body,
    bytes,
    text: async () => (await bytes()).toString('utf8'),
    json: async () => parseJson((await bytes()).toString('utf8')),
  };
}

function lowerCase(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** `Host` decides which site a shared address serves and framing headers who reads what: both follow from the URL and body. */
function assertHeaders(hop: Hop): void {
  if (hop.headers.host !== undefined && hop.headers.host !== hop.url.host) {
    throw new OutboundError('BAD_HEADER', 'the Host header must be that of the address');
  }
  for (const name of ['transfer-encoding', 'connection', 'upgrade', 'expect', 'proxy-authorization']) {
    if (hop.headers[name] !== undefined) throw new OutboundError('BAD_HEADER', `the header ${name} may not be set`);
  }
}

/** The parser's own error would quote what came. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new OutboundError('BAD_JSON', 'the answer is not JSON');
  }
}

/** What a call fails with: what ended it, or what went wrong by itself. */
function explain(error: unknown, url: URL, ending: AbortSignal): Error {
  if (ending.aborted) return ending.reason;
  const known = asOutboundError(error);
  if (known) return known;
  const detail = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
  return new OutboundError('CONNECTION_FAILED', `the call to ${url.host} failed${detail}`, { cause: error });
}
