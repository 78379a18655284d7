import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { RecordedSpan } from './recorded-span.ts';

/** What became of a batch; `later`: the receiver has no room for it now, or cannot be reached. */
export type Sent = { accepted: true; refused: number } | { accepted: false; later: boolean; why: string };

export interface SpanQueueDeps {
  /** Never rejects. */
  send(spans: readonly RecordedSpan[]): Promise<Sent>;
  clock: Clock;
  log: Logger;
}

/** Most spans that wait; some 4 MB. */
const MOST = 4096;
const BATCH = 512;
const DELAY_MS = 1000;
const LONGEST_DELAY_MS = 30_000;
/** For what is left when the server stops. */
const GOODBYE_MS = 2000;

/** Spans on their way out: taken without a wait, sent in batches, thrown away and counted where they cannot be. */
export class SpanQueue {
  readonly #deps: SpanQueueDeps;
  #waiting: RecordedSpan[] = [];
  #delayMs = DELAY_MS;
  #dropped = 0;
  #failing = false;
  #cancel: (() => void) | undefined;
  #sending: Promise<void> | undefined;
  #closed = false;

  constructor(deps: SpanQueueDeps) {
    this.#deps = deps;
  }

  get dropped(): number {
    return this.#dropped;
  }

  add(span: RecordedSpan): void {
    if (this.#waiting.length >= MOST || this.#closed) {
      this.#dropped += 1;
      return;
    }
    this.#waiting.push(span);
    // A receiver that is slow or gone is not asked any sooner for that more waits.
    if (this.#waiting.length >= BATCH && !this.#failing) this.#flush();
    else this.#arm();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel?.();
    const late = Promise.withResolvers<void>();
    const cancel = this.#deps.clock.after(GOODBYE_MS, late.resolve);
    await Promise.race([this.#sendAll(), late.promise]).finally(cancel);
    this.#dropped += this.#waiting.length;
    this.#waiting = [];
  }

  async #sendAll(): Promise<void> {
    await this.#sending;
    while (this.#waiting.length > 0 && !this.#failing) await this.#sendBatch();
  }

  #arm(): void {
    if (this.#cancel || this.#sending || this.#closed) return;
    this.#cancel = this.#deps.clock.after(this.#delayMs, () => {
      this.#cancel = undefined;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#sending || this.#closed) return;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#sending = this.#sendBatch().finally(() => {
      this.#sending = undefined;
      if (this.#waiting.length >= BATCH && !this.#failing) this.#flush();
      else if (this.#waiting.length > 0) this.#arm();
    });
  }

  /** Never rejects. */
  async #sendBatch(): Promise<void> {
    const batch = this.#waiting.slice(0, BATCH);
    const sent = await this.#deps.send(batch);
    if (sent.accepted) this.#dropped += sent.refused;
    else if (!sent.later) this.#dropped += batch.length;
    if (sent.accepted || !sent.later) this.#waiting.splice(0, batch.length);
    this.#note(sent);
  }

  /** Said once when it begins, and once when it is over. */
  #note(sent: Sent): void {
    const { log } = this.#deps;
    if (sent.accepted) {
      if (this.#failing) log.info({ dropped: this.#dropped }, 'spans are accepted again');
      this.#failing = false;
      this.#delayMs = DELAY_MS;
      return;
    }
    if (!this.#failing) log.warn({ why: sent.why }, 'spans are not taken by telemetry.otlpEndpoint; it is tried again');
    this.#failing = true;
    this.#delayMs = Math.min(this.#delayMs * 2, LONGEST_DELAY_MS);
  }
}
