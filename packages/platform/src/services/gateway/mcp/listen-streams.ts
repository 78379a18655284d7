import { isObject } from '../tools/json-pointer.ts';
import { whenAnswered } from './answer-body.ts';
import { refusal } from './refusal.ts';

/** Streams of one caller at one gateway at a time; the protocol's package bounds those of the gateway by 1,024. */
const MOST_OF_CALLER = 64;

/** The streams on which clients of 2026-07-28 are told of changes of one gateway. */
export class ListenStreams {
  readonly #ofCaller = new Map<string, number>();
  readonly #over = new AbortController();

  /** Whether that message asks for one. */
  isOne(body: unknown): boolean {
    return isObject(body) && body.method === 'subscriptions/listen';
  }

  /** Opens it by `serve`, unless the caller has his share of them. */
  async serve(
    request: Request,
    body: unknown,
    owner: string,
    serve: (request: Request) => Promise<Response>,
  ): Promise<Response> {
    const count = this.#ofCaller.get(owner) ?? 0;
    if (count >= MOST_OF_CALLER) return refused(body);
    this.#ofCaller.set(owner, count + 1);
    const done = once(() => this.#release(owner));
    try {
      const signal = AbortSignal.any([request.signal, this.#over.signal]);
      return whenAnswered(await serve(new Request(request, { signal })), done);
    } catch (error) {
      done();
      throw error;
    }
  }

  /** Ends all. */
  end(): void {
    this.#over.abort(new Error('the gateway has changed'));
  }

  #release(owner: string): void {
    const count = (this.#ofCaller.get(owner) ?? 1) - 1;
    if (count > 0) this.#ofCaller.set(owner, count);
    else this.#ofCaller.delete(owner);
  }
}

/** As the protocol's package refuses those above its own bound. */
function refused(body: unknown): Response {
  return refusal(200, 'internalError', `Subscription limit reached: one caller has at most ${MOST_OF_CALLER}`, body);
}

function once(run: () => void): () => void {
  let ran = false;
  return () => {
    if (!ran) run();
    ran = true;
  };
}
