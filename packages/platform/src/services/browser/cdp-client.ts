import { WebSocket } from 'ws';

/** What of the protocol is read here; the rest is whoever asks for it. */
interface Message {
  id?: number;
  result?: unknown;
  error?: { message?: unknown };
}

const MAX_MESSAGE_BYTES = 100 * 2 ** 20;

/** A short conversation with the browser of a session, by its own protocol (CDP). Each call is bounded by `signal`. */
export class CdpClient {
  readonly #socket: WebSocket;
  readonly #signal: AbortSignal;
  readonly #waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  #last = 0;

  private constructor(socket: WebSocket, signal: AbortSignal) {
    this.#socket = socket;
    this.#signal = signal;
    socket.on('message', (text) => this.#hear(String(text)));
    socket.on('error', () => undefined);
    socket.once('close', () => this.#fail(new Error('The browser has broken down, and starts again.')));
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
    this.#last += 1;
    const id = this.#last;
    const answer = new Promise<unknown>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    this.#socket.send(JSON.stringify({ id, method, params, ...(sessionId === undefined ? {} : { sessionId }) }));
    return (await answer) as Result;
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#socket.close();
  }

  #hear(text: string): void {
    const { id, result, error } = JSON.parse(text) as Message;
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
