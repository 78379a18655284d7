import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** When a request's answer came, in milliseconds of `performance.now()`. */
export interface Answered {
  firstByteAt: number;
  endAt: number;
  bytes: number;
}

/** Of a server that is measured: longer than any answer takes. */
const SILENT_MS = 30_000;

interface Waiting {
  resolve(answer: Answered): void;
  reject(error: Error): void;
}

/**
 * One keep-alive connection of a load generator: bytes of whole requests go out as they are, answers are found by
 * Content-Length or the last chunk. It costs little, so that it measures the other side and not itself.
 */
export class Connection {
  readonly #socket: Socket;
  #waiting: Waiting | undefined;
  #head = '';
  #firstByteAt = 0;
  #bodyBytes = 0;
  /** Bytes of body to come; -1 while the head is not whole, Infinity when chunked. */
  #expected = -1;
  #tail = '';
  /** Why nothing can be sent any more: the other side may close between two requests. */
  #ended: Error | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setTimeout(SILENT_MS, () => socket.destroy(new Error(`no answer within ${SILENT_MS / 1000} s`)));
    socket.on('data', (part: Buffer) => this.#receive(part));
    const failed = (error: Error): void => {
      this.#ended ??= error;
      this.#waiting?.reject(this.#ended);
    };
    socket.on('error', failed).on('close', () => failed(new Error('the connection was closed')));
    socket.on('end', () => failed(new Error('the other side has closed the connection')));
  }

  /** Whether another request can be sent. */
  get open(): boolean {
    return this.#ended === undefined;
  }

  static async open(host: string, port: number): Promise<Connection> {
    const socket = connect(port, host);
    await once(socket, 'connect');
    return new Connection(socket);
  }

  /** Sends one request and waits for its whole answer. Rejects unless that is 200, and when nothing comes for half a minute. One at a time. */
  send(request: Buffer): Promise<Answered> {
    if (this.#ended) return Promise.reject(this.#ended);
    this.#head = '';
    this.#tail = '';
    this.#firstByteAt = 0;
    this.#bodyBytes = 0;
    this.#expected = -1;
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#waiting = undefined;
    this.#socket.destroy();
  }

  #receive(part: Buffer): void {
    let body = part;
    if (this.#expected === -1) {
      this.#head += part.toString('latin1');
      const end = this.#head.indexOf('\r\n\r\n');
      if (end < 0) return;
      if (!this.#head.startsWith('HTTP/1.1 200')) {
        this.#waiting?.reject(new Error(`the answer is ${this.#head.slice(0, 400)}`));
        return;
      }
      const length = /\r\ncontent-length: (\d+)/i.exec(this.#head.slice(0, end + 2))?.[1];
      this.#expected = length === undefined ? Number.POSITIVE_INFINITY : Number(length);
      body = part.subarray(part.length - (this.#head.length - end - 4));
    }
    if (body.length > 0 && this.#firstByteAt === 0) this.#firstByteAt = performance.now();
    this.#bodyBytes += body.length;
    if (this.#expected === Number.POSITIVE_INFINITY) {
      this.#tail = (this.#tail + body.subarray(-5).toString('latin1')).slice(-5);
      if (this.#tail !== '0\r\n\r\n') return;
    } else if (this.#bodyBytes < this.#expected) return;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve({ firstByteAt: this.#firstByteAt, endAt: performance.now(), bytes: this.#bodyBytes });
  }
}
