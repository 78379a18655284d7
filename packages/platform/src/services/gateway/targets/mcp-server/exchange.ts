import { AsyncLocalStorage } from 'node:async_hooks';
import { OutboundError } from '../../../../kernel/outbound/index.ts';
import type { Credential } from '../../outbound/credential.ts';
import type { SessionClient } from '../target-kind.ts';

export interface ExchangeOptions {
  credential: Credential;
  /** Whom a server of an older version may ask and tell meanwhile. */
  client?: SessionClient | undefined;
  /** Beside the credential. */
  headers?: Readonly<Record<string, string>>;
  query?: readonly (readonly [name: string, value: string])[];
  /** Limit of all answers together. */
  maxBytes: number;
  maxRequests: number;
}

/** Limit of all event streams together: each event costs far more time than its bytes say, and has at least two lines. */
const MAX_LINES = 40_000;
const LINE_FEED = 10;

/** What a caller wants of a backend, in as many HTTP requests as that takes; it bounds what they cost together. */
export class Exchange {
  readonly credential: Credential;
  readonly headers: Readonly<Record<string, string>>;
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly client: SessionClient | undefined;
  readonly #over = new AbortController();
  readonly #most: ExchangeOptions;
  #requests = 0;
  #bytes = 0;
  #lines = 0;
  /** What went wrong on the way first: the protocol's package tells less of it. */
  failure: unknown;
  /** Headers of the last answer. */
  answered: Readonly<Record<string, string | string[] | undefined>> = {};

  constructor(options: ExchangeOptions) {
    this.credential = options.credential;
    this.headers = options.headers ?? {};
    this.query = options.query ?? [];
    this.client = options.client;
    this.#most = options;
  }

  /** Aborted when nothing of it is wanted any more. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Bytes that may still come. */
  get bytesLeft(): number {
    return Math.max(0, this.#most.maxBytes - this.#bytes);
  }

  /** Throws OutboundError once there are too many. */
  countRequest(): void {
    if (++this.#requests > this.#most.maxRequests)
      throw new OutboundError('TOO_LARGE', `the answer took more than ${this.#most.maxRequests} requests`);
  }

  /** Throws OutboundError once there are too many. */
  countBytes(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > this.#most.maxBytes)
      throw new OutboundError('TOO_LARGE', `the answer has more than ${this.#most.maxBytes} bytes`);
  }

  /** The lines of a part of a stream of events. Throws OutboundError once there are too many. */
  countLines(part: Uint8Array): void {
    for (let at = part.indexOf(LINE_FEED); at >= 0; at = part.indexOf(LINE_FEED, at + 1)) this.#lines++;
    if (this.#lines > MAX_LINES)
      throw new OutboundError('TOO_LARGE', `the answer has more than ${MAX_LINES} lines of events`);
  }

  /** Ends the requests that are still under way. */
  end(): void {
    this.#over.abort(new OutboundError('CONNECTION_FAILED', 'the exchange is over'));
  }

  /** What `work` sends belongs to this exchange. */
  during<T>(work: () => Promise<T>): Promise<T> {
    return exchanges.run(this, work);
  }
}

const exchanges = new AsyncLocalStorage<Exchange>();

/** The exchange that what is sent now belongs to. */
export function currentExchange(): Exchange | undefined {
  return exchanges.getStore();
}
