import { WebSocket } from 'ws';

/** What the browser says unasked. */
export interface CdpEvent {
  method: string;
  params: Record<string, unknown>;
  /** Of the session with a page that it comes from; absent for the browser's own. */
  sessionId: string | undefined;
}

/** What of the protocol is read here; the rest is whoever asks for it. */
interface Message {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  sessionId?: string;
  result?: unknown;
  error?: { message?: unknown };
}

const MAX_MESSAGE_BYTES = 100 * 2 ** 20;

/** A conversation with the browser of a session, by its own protocol (CDP). Each call is bounded by `signal`. */
export class CdpClient {
  readonly #socket: WebSocket;
  readonly #signal: AbortSignal;
  readonly #waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  /** Resolves when the browser is gone, or the conversation is over. */
  readonly closed: Promise<void>;
  #last = 0;
  #listener: (event: CdpEvent) => void = () => undefined;

  private constructor(socket: WebSocket, signal: AbortSignal) {
    this.#socket = socket;
    this.#signal = signal;
    socket.on('message', (text) => {
      try {
        this.#hear(String(text));
      } catch {
        // A sandbox that is no browser any more: nothing that it says is believed.
        socket.terminate();
      }
    });
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#fail(new Error('The browser has broken down, and starts again.'));
        resolve();
      });
    });
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  readonly #onAbort = (): void => {
    this.#fail(new Error('The browser did not answer in time; a dialog of the page may be open.'));
    this.#socket.terminate();
  };

  /** Rejects when the browser cannot be reached. */
  static async open({ host, port }: { host: string; port: number }, signal: AbortSignal): Promise<CdpClient> {
    const socket = new WebSocket(`ws://${host.includes(':') ? `[${host}]` : host}:${port}/automation`, {
      maxPayload: MAX_MESSAGE_BYTES,
      perMessageDeflate: false,
      handshakeTimeout: 10_000,
    });
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    return new CdpClient(socket, signal);
  }

  /** The result, as the browser gives it. Rejects with what the browser says against it. */
  async send<Result>(method: string, params: object = {}, sessionId?: string): Promise<Result> {
    this.#signal.throwIfAborted();
    if (this.#socket.readyState !== WebSocket.OPEN) throw new Error('The browser is gone.');
    this.#last += 1;
    const id = this.#last;
    const answer = new Promise<unknown>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#socket.send(JSON.stringify({ id, method, params, ...(sessionId === undefined ? {} : { sessionId }) }));
    return (await answer) as Result;
  }

  /** How many calls wait for their answer. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Hears everything that the browser says unasked, in its order. */
  listen(listener: (event: CdpEvent) => void): void {
    this.#listener = listener;
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#socket.close();
  }

  #hear(text: string): void {
    const { id, result, error, method, params = {}, sessionId } = JSON.parse(text) as Message;
    if (id === undefined && method !== undefined) this.#listener({ method, params, sessionId });
    const waiting = id === undefined ? undefined : this.#waiting.get(id);
    if (id === undefined || !waiting) return;
    this.#waiting.delete(id);
    if (error) waiting.reject(new Error(typeof error.message === 'string' ? error.message : 'the browser refuses it'));
    else waiting.resolve(result);
  }

  #fail(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
