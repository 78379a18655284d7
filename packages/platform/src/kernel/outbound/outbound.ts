import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { type AddressPolicy, createAddressPolicy } from './address-policy.ts';
import { createGuardedDispatcher } from './dispatcher.ts';
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
  /** Calls under way at once, over all origins. */
  inFlight: number;
}

export const DEFAULT_OUTBOUND_LIMITS: OutboundLimits = {
  timeoutMs: 30_000,
  connectTimeoutMs: 10_000,
  maxBytes: 10_000_000,
  redirects: 5,
  connectionsPerOrigin: 64,
  inFlight: 512,
};

export interface OutboundDeps {
  /** CIDR ranges that are called although they are private or loopback (`--allow-private-egress`). */
  allowPrivate?: readonly string[];
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
  json(): Promise<unknown>;
}

/** The one way out to an address that a user supplied. Every failure is an `OutboundError` or the signal's own reason. */
export interface Outbound {
  fetch(url: string | URL, request?: OutboundRequest): Promise<OutboundResponse>;
  /** For clients that bring their own protocol on undici; it bounds addresses, not time or size. */
  dispatcher: Dispatcher;
  /** Resolves and judges; whoever uses the result must connect to exactly these addresses. */
  resolve: Resolve;
  /** Judges a URL without resolving its name; for checks when an address is configured. */
  check(url: string | URL): URL;
  close(): Promise<void>;
}

export function createOutbound(deps: OutboundDeps): Outbound {
  const limits = { ...DEFAULT_OUTBOUND_LIMITS, ...deps.limits };
  const addresses: AddressPolicy = createAddressPolicy(deps.allowPrivate);
  const rules = { addresses, ports: deps.ports };
  const resolve = createGuardedResolve({
    resolve: deps.resolve ?? createSystemResolve(),
    addresses,
    clock: deps.clock,
    timeoutMs: limits.connectTimeoutMs,
  });
  const dispatcherTrusting = (ca?: string) =>
    createGuardedDispatcher({ ...limits, addresses, resolve, ports: deps.ports, ca });
  const dispatcher = dispatcherTrusting();
  let inFlight = 0;

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
        const answer = await send(hop, via, ending.signal);
        const location = answer.headers.location;
        if (most === 0 || !isRedirect(answer.statusCode) || typeof location !== 'string') {
          return respond(answer, hop.url, request.maxBytes ?? limits.maxBytes, release);
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
      throw request.signal?.aborted ? request.signal.reason : explain(error, hop.url, ending.signal);
    }
  }

  function send(hop: Hop, via: Dispatcher, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    return via.request({
      origin: hop.url.origin,
      path: hop.url.pathname + hop.url.search,
      method: hop.method as Dispatcher.HttpMethod,
      headers: hop.headers,
      body: hop.body ?? null,
      signal,
    });
  }

  return {
    async fetch(url, request = {}) {
      if (inFlight >= limits.inFlight) throw new OutboundError('OVERLOADED', 'too many outgoing calls at once');
      inFlight++;
      // Sockets that believe more than others do are nobody else's.
      const own = request.ca === undefined ? undefined : dispatcherTrusting(request.ca);
      const over = (): void => {
        inFlight--;
        void own?.destroy(null);
      };
      try {
        const answer = await call(url, request, own ?? dispatcher);
        answer.body.once('close', over);
        return answer;
      } catch (error) {
        over();
        throw error;
      }
    },
    dispatcher,
    resolve,
    check: (url) => checkTarget(url, rules),
    close: () => dispatcher.destroy(null),
  };
}

function respond(answer: Dispatcher.ResponseData, url: URL, maxBytes: number, release: () => void): OutboundResponse {
  const { 'content-encoding': encoding, ...headers } = answer.headers;
  let body: Readable;
  try {
    body = boundedBody(answer.body, Array.isArray(encoding) ? encoding.join(',') : encoding, maxBytes);
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
    json: async (): Promise<unknown> => JSON.parse((await bytes()).toString('utf8')),
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

function explain(error: unknown, url: URL, signal: AbortSignal): unknown {
  const known = asOutboundError(signal.aborted ? signal.reason : error);
  if (known) return known;
  const detail = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
  return new OutboundError('CONNECTION_FAILED', `the call to ${url.host} failed${detail}`, { cause: error });
}
