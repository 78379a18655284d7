import { OtlpReceiver } from '../../../packages/platform/src/kernel/telemetry/testing/otlp-receiver.ts';

/** A receiver of spans that decodes each and keeps none. */
export class SpanCount {
  readonly #receiver: OtlpReceiver;
  #count = 0;
  readonly #forgetting: NodeJS.Timeout;

  private constructor(receiver: OtlpReceiver) {
    this.#receiver = receiver;
    this.#forgetting = setInterval(() => this.#forget(), 1000);
  }

  static async start(): Promise<SpanCount> {
    return new SpanCount(await OtlpReceiver.start());
  }

  get url(): string {
    return this.#receiver.url;
  }

  get count(): number {
    this.#forget();
    return this.#count;
  }

  async close(): Promise<void> {
    clearInterval(this.#forgetting);
    await this.#receiver.close();
  }

  #forget(): void {
    this.#count += this.#receiver.spans.splice(0).length;
    this.#receiver.bytes.length = 0;
    this.#receiver.requests.length = 0;
  }
}
