import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type JSONRPCMessage,
  type RequestId,
  StreamableHTTPClientTransport,
  type Transport,
  type TransportSendOptions,
} from '@modelcontextprotocol/client';
import { type BackendFetchDeps, backendFetch } from './backend-fetch.ts';

/** The error for a request whose answer ended without a result. The code is in the range that JSON-RPC reserves for implementations. */
export const NO_RESULT = { code: -32000, message: 'the answer ended without a result' };

/** How the transport reconnects if an answer ends without a result. After `maxRetries`, it gives up. */
const RECONNECTS = {
  initialReconnectionDelay: 500,
  maxReconnectionDelay: 5_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 2,
};

/**
 * Streamable HTTP to a backend. The package's own transport waits for a result as long as the request may take; this one tells at once that none
 * comes, when the answer to a request ends without it.
 */
export class BackendTransport implements Transport {
  readonly hasPerRequestStream = true;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: Transport['onmessage'];
  readonly #inner: StreamableHTTPClientTransport;
  /** The requests that have no result yet, by their ids. */
  readonly #awaited = new Map<RequestId, object>();
  readonly #sends = new AsyncLocalStorage<{ streams: boolean }>();

  constructor(url: URL, deps: BackendFetchDeps) {
    const onAnswer = (streams: boolean): void => {
      const sent = this.#sends.getStore();
      if (sent) sent.streams = streams;
    };
    const fetch = backendFetch({ ...deps, onAnswer });
    this.#inner = new StreamableHTTPClientTransport(url, { fetch, reconnectionOptions: RECONNECTS });
    this.#inner.onclose = () => this.onclose?.();
    this.#inner.onerror = (error) => this.onerror?.(error);
    this.#inner.onmessage = (message) => this.#receive(message);
  }

  get sessionId(): string | undefined {
    return this.#inner.sessionId;
  }

  setProtocolVersion(version: string): void {
    this.#inner.setProtocolVersion(version);
  }

  start(): Promise<void> {
    return this.#inner.start();
  }

  async send(message: JSONRPCMessage, options: TransportSendOptions = {}): Promise<void> {
    if (!('method' in message && 'id' in message)) return this.#inner.send(message, options);
    const { id } = message;
    const sent = { streams: false };
    this.#awaited.set(id, sent);
    const ended = (): void => {
      if (this.#awaited.get(id) !== sent) return;
      this.#receive({ jsonrpc: '2.0', id, error: NO_RESULT });
    };
    const onRequestStreamEnd = (): void => {
      options.onRequestStreamEnd?.();
      ended();
    };
    options.requestSignal?.addEventListener('abort', () => this.#awaited.delete(id), { once: true });
    try {
      await this.#sends.run(sent, () => this.#inner.send(message, { ...options, onRequestStreamEnd }));
    } catch (error) {
      this.#awaited.delete(id);
      throw error;
    }
    if (!sent.streams) ended();
  }

  /** Also ends the session, where there is one; that it cannot be ended is the backend's matter. */
  async close(): Promise<void> {
    await this.#inner.terminateSession().catch(() => undefined);
    await this.#inner.close();
  }

  #receive(message: JSONRPCMessage): void {
    if (!('method' in message) && message.id !== undefined) this.#awaited.delete(message.id);
    this.onmessage?.(message);
  }
}
