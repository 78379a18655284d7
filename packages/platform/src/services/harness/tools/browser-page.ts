import { WebSocket } from 'ws';

interface Answer {
  id?: number;
  result?: unknown;
  error?: { message?: string };
}

/** Of one message of the browser's. */
const MOST_BYTES = 64 * 2 ** 20;
const HANDSHAKE_MS = 15_000;
/** How long one call of the protocol may take. */
const CALL_MS = 30_000;

/** The page in front of a browser's session, by the browser's own protocol (CDP) at the platform's address. */
export class BrowserPage {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #last = 0;
  #session: string | undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (text) => {
      const answer = JSON.parse(String(text)) as Answer;
      this.#waiting.get(answer.id ?? 0)?.(answer);
    });
    // What ends the connection fails every call.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      for (const settle of this.#waiting.values()) settle({ error: { message: 'The browser has gone.' } });
    });
  }

  /** Rejects when the browser cannot be reached, or has no page. */
  static async open(url: string, headers: Record<string, string>): Promise<BrowserPage> {
    const socket = new WebSocket(url, { headers, maxPayload: MOST_BYTES, handshakeTimeout: HANDSHAKE_MS });
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    const page = new BrowserPage(socket);
    const { targetInfos } = await page.call<{ targetInfos: { targetId: string; type: string }[] }>('Target.getTargets');
    const found = targetInfos.find(({ type }) => type === 'page');
    if (!found) throw new Error('The browser has no page.');
    const target = { targetId: found.targetId, flatten: true };
    const { sessionId } = await page.call<{ sessionId: string }>('Target.attachToTarget', target);
    page.#session = sessionId;
    return page;
  }

  /** The result, as the browser gives it. Rejects with what the browser says against it, and after 30 s. */
  async call<Result>(method: string, params: object = {}): Promise<Result> {
    const id = ++this.#last;
    const { promise, resolve } = Promise.withResolvers<Answer>();
    const late = setTimeout(() => resolve({ error: { message: 'The browser did not answer in time.' } }), CALL_MS);
    this.#waiting.set(id, resolve);
    const session = this.#session === undefined ? {} : { sessionId: this.#session };
    this.#socket.send(JSON.stringify({ id, method, params, ...session }));
    try {
      const { result, error } = await promise;
      if (error) throw new Error(error.message ?? `The browser refuses ${method}.`);
      // The protocol says what each method gives.
      return result as Result;
    } finally {
      clearTimeout(late);
      this.#waiting.delete(id);
    }
  }

  close(): void {
    this.#socket.close();
  }
}
