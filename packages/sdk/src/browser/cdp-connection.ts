import { WebSocket } from 'ws';
import type { WsHeaders } from './ws-headers.ts';

/** What the browser says unasked. */
interface CdpEvent {
  method: string;
  params: Record<string, unknown>;
  sessionId: string | undefined;
}

interface Message extends Partial<CdpEvent> {
  id?: number;
  result?: unknown;
  error?: { message?: string };
}

/** Longest wait for an answer of the browser. */
const ANSWER_MS = 30_000;

/** A connection with the browser of a session by its own protocol (CDP). */
export class CdpConnection {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  readonly #onEvent: (event: CdpEvent) => void;
  #last = 0;

  private constructor(socket: WebSocket, onEvent: (event: CdpEvent) => void) {
    this.#socket = socket;
    this.#onEvent = onEvent;
    socket.on('message', (text) => this.#hear(JSON.parse(String(text)) as Message));
    socket.on('error', () => socket.terminate());
    socket.once('close', (code, reason) => {
      const why = new Error(`The connection with the browser ended (${code} ${String(reason)}).`);
      for (const { reject } of this.#waiting.values()) reject(why);
      this.#waiting.clear();
    });
  }

  /** Rejects when the handshake is refused. */
  static async open({ url, headers }: WsHeaders, onEvent: (event: CdpEvent) => void): Promise<CdpConnection> {
    const socket = new WebSocket(url, { headers, maxPayload: 100 * 2 ** 20, perMessageDeflate: false });
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    return new CdpConnection(socket, onEvent);
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN;
  }

  /** The browser's answer. Rejects with what it says against it, and after 30 s without one: a dialog may be open. */
  async send<Result>(method: string, params: object = {}, sessionId?: string): Promise<Result> {
    if (!this.isOpen) throw new Error('The connection with the browser has ended.');
    this.#last += 1;
    const id = this.#last;
    let timer: NodeJS.Timeout | undefined;
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      timer = setTimeout(() => reject(new Error(`The browser did not answer ${method} in time.`)), ANSWER_MS);
    });
    this.#socket.send(JSON.stringify({ id, method, params, sessionId }));
    try {
      return (await answer) as Result;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(id);
    }
  }

  close(): void {
    this.#socket.close();
  }

  #hear({ id, result, error, method, params = {}, sessionId }: Message): void {
    if (id === undefined) {
      if (method !== undefined) this.#onEvent({ method, params, sessionId });
      return;
    }
    const waiting = this.#waiting.get(id);
    if (error) waiting?.reject(new Error(error.message ?? 'The browser refuses it.'));
    else waiting?.resolve(result);
  }
}
