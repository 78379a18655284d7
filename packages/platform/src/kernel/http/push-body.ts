import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';

/** Bytes that may wait between agent and client before the agent is asked to pause. */
const HIGH_WATER_BYTES = 256 * 1024;

/** Answers up to this size are joined with their head. */
const ONE_WRITE_BYTES = 16 * 1024;

/** A response that arrives from a sandbox: its head at once, its body as it comes. */
export interface UpstreamResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: PushBody;
}

/** Calls `run` when the client goes away before it has its answer; gives the function that calls that off. */
export type OnGone = (run: () => void) => () => void;

/**
 * Sends a request and resolves when the response's head is there. The body pushes itself from the upstream socket into the
 * client's response, without a stream object in between: this is what keeps the hot path short.
 * Rejects with undici's error when no head arrives; a later error ends the body with it. Until the head is there, `onGone` tells when
 * nobody waits for it any more: the request is ended then, and the upstream sees its connection closed. A body that only the
 * end of its connection ends (RFC 9112, 6.3) looks whole when its sender has died: `cutShort` tells why it is not, if so.
 */
export function requestUpstream(
  connection: Dispatcher,
  options: Dispatcher.DispatchOptions,
  onGone?: OnGone,
  cutShort?: () => Promise<Error | undefined>,
): Promise<UpstreamResponse> {
  return new Promise((resolve, reject) => {
    let body: PushBody | undefined;
    let endKnown = true;
    let started: Dispatcher.DispatchController | undefined;
    let gone: Error | undefined;
    const callOff = onGone?.(() => {
      gone = new Error('the client closed the connection before the answer began');
      // One that still waits for a connection is ended when it gets one.
      started?.abort(gone);
      reject(gone);
    });
    connection.dispatch(options, {
      onRequestStart(controller) {
        started = controller;
        if (gone) controller.abort(gone);
      },
      onResponseStart(controller, status, headers) {
        if (status < 200) return;
        callOff?.();
        const length = headers['content-length'];
        endKnown = length !== undefined || headers['transfer-encoding'] !== undefined;
        body = new PushBody(controller, typeof length === 'string' ? length : undefined);
        resolve({ status, headers, body });
      },
      onResponseData(_controller, chunk) {
        body?.receive(chunk);
      },
      onResponseEnd() {
        if (endKnown || !cutShort) return body?.finish();
        cutShort().then(
          (why) => (why ? body?.fail(why) : body?.finish()),
          (error: Error) => body?.fail(error),
        );
      },
      onResponseError(_controller, error) {
        callOff?.();
        if (body) body.fail(error);
        else reject(error);
      },
    });
  });
}

/** What a body comes from. */
type BodySource = Pick<Dispatcher.DispatchController, 'pause' | 'resume' | 'abort'>;

/** A body in flight. Consume it exactly once: by `pushTo`, by iteration, or by `cancel`. */
export class PushBody implements AsyncIterable<Uint8Array> {
  readonly #controller: BodySource | undefined;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #sink: ServerResponse | undefined;
  #state: 'open' | 'ended' | 'failed' = 'open';
  #error: Error | undefined;
  #settle: (() => void) | undefined;
  readonly #onSettled: (() => void)[] = [];
  #watch: ((part: Buffer) => void) | undefined;
  #wake: (() => void) | undefined;

  /** The upstream's Content-Length, when it told. */
  readonly length: string | undefined;

  /** A body that is whole already. */
  static of(whole: string | Uint8Array): PushBody {
    const body = new PushBody(undefined, String(Buffer.byteLength(whole)));
    if (whole.length > 0) body.receive(Buffer.from(whole));
    body.finish();
    return body;
  }

  /** A body that a web stream brings, read no faster than it is taken; who cancels it cancels the stream. What comes first is on its way before the rest is read: it may all be there already. */
  static from(stream: ReadableStream<Uint8Array>): PushBody {
    const reader = stream.getReader();
    let waiting: PromiseWithResolvers<void> | undefined;
    const body = new PushBody({
      pause() {
        waiting ??= Promise.withResolvers();
      },
      resume() {
        waiting?.resolve();
        waiting = undefined;
      },
      abort(reason) {
        waiting?.resolve();
        body.fail(reason);
        reader.cancel(reason).catch(() => undefined);
      },
    });
    let gathered: Uint8Array[] = [];
    let bytes = 0;
    const handOn = (): void => {
      if (gathered.length > 0 && !body.settled) body.receive(Buffer.concat(gathered));
      gathered = [];
      bytes = 0;
    };
    const pump = async (): Promise<void> => {
      for (let first = true; ; first = false) {
        const { done, value } = await reader.read();
        if (body.settled) return;
        if (done) {
          handOn();
          return body.finish();
        }
        // Parts are small, and many come at once: those of one turn of the loop leave in one write.
        if (gathered.push(value) === 1 && !first) setImmediate(handOn);
        bytes += value.byteLength;
        if (first || bytes > HIGH_WATER_BYTES) handOn();
        // Node writes once nothing is left to be done at once.
        if (first) await new Promise((resolve) => setImmediate(resolve));
        await waiting?.promise;
      }
    };
    pump().catch((error: Error) => {
      handOn();
      body.fail(error);
    });
    return body;
  }

  constructor(controller: BodySource | undefined, length?: string) {
    this.#controller = controller;
    this.length = length;
  }

  /** True once nothing more will arrive: ended, broken or cancelled. */
  get settled(): boolean {
    return this.#state !== 'open';
  }

  /** Calls `run` once, when the body has ended, broken or been cancelled; several in the order in which they came. */
  onSettled(run: () => void): void {
    if (this.settled) run();
    else this.#onSettled.push(run);
  }

  /** Shows `look` each part as it comes, those that wait at once; `cancel` from there keeps the part from going on, unless it is the last. */
  watch(look: (part: Buffer) => void): void {
    for (const part of this.#waiting) look(part);
    this.#watch = look;
  }

  receive(chunk: Buffer): void {
    this.#watch?.(chunk);
    if (this.#state !== 'open') return;
    if (this.#sink) {
      if (!this.#sink.write(chunk)) this.#pauseUntilDrained(this.#sink);
      return;
    }
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes > HIGH_WATER_BYTES) this.#controller?.pause();
    this.#wake?.();
  }

  finish(): void {
    this.#state = 'ended';
    this.#sink?.end();
    this.#done();
  }

  fail(error: Error): void {
    this.#state = 'failed';
    this.#error = error;
    this.#done();
  }

  #done(): void {
    this.#settle?.();
    this.#wake?.();
    for (const run of this.#onSettled.splice(0)) run();
  }

  /**
   * Writes the whole body into `sink` and ends it. Resolves when the last byte is handed over; rejects with the upstream's error,
   * after which the caller must destroy the sink, for its head already promised a whole body.
   */
  async pushTo(sink: ServerResponse): Promise<void> {
    if (this.#state === 'ended') {
      // The usual short answer. As Latin-1 text it leaves in one write together with the head; as a buffer it would take two.
      const [first] = this.#waiting;
      if (first && this.#waiting.length === 1 && first.length <= ONE_WRITE_BYTES)
        sink.end(first.toString('latin1'), 'latin1');
      else sink.end(Buffer.concat(this.#waiting));
      return;
    }
    if (this.#state === 'failed') throw this.#error;
    this.#sink = sink;
    sink.flushHeaders();
    const onClose = (): void => {
      // The client went away: the agent's work is of no use to anybody.
      if (this.#state === 'open') this.cancel(new Error('the client closed the connection'));
    };
    sink.once('close', onClose);
    try {
      await new Promise<void>((resolve) => {
        this.#settle = resolve;
        for (const chunk of this.#waiting.splice(0)) sink.write(chunk);
        if (sink.writableNeedDrain) this.#pauseUntilDrained(sink);
        else this.#controller?.resume();
      });
    } finally {
      sink.removeListener('close', onClose);
    }
    if (this.#error) throw this.#error;
  }

  /** Ends the request; the upstream sees its connection closed. */
  cancel(reason: Error): void {
    if (this.#state === 'open') this.#controller?.abort(reason);
  }

  /** At most `maxBytes` of the body as text, for error messages; the rest is thrown away. */
  async head(maxBytes: number): Promise<string> {
    let text = '';
    try {
      for await (const chunk of this) {
        text += Buffer.from(chunk).toString('utf8');
        if (text.length >= maxBytes) break;
      }
    } catch {
      // What arrived before the break is all there is to show.
    }
    return text.slice(0, maxBytes);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    try {
      for (;;) {
        const chunk = this.#waiting.shift();
        if (chunk) {
          this.#waitingBytes -= chunk.length;
          if (this.#waitingBytes <= HIGH_WATER_BYTES && this.#state === 'open') this.#controller?.resume();
          yield chunk;
          continue;
        }
        if (this.#state === 'failed') throw this.#error;
        if (this.#state === 'ended') return;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      this.cancel(new Error('the reader of the body went away'));
    }
  }

  #pauseUntilDrained(sink: ServerResponse): void {
    this.#controller?.pause();
    void once(sink, 'drain').then(
      () => this.#controller?.resume(),
      () => undefined,
    );
  }
}
