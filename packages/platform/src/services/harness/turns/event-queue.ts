/** Events that wait for their reader: who writes waits while there are many, and who reads ends the writing. */
export class EventQueue<Event> {
  readonly #most: number;
  readonly #events: Event[] = [];
  #failure: { error: unknown } | undefined;
  #ended = false;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  constructor(most: number) {
    this.#most = most;
  }

  /** Resolves when there is room for the next one; at once where nobody reads any more. */
  async push(event: Event): Promise<void> {
    if (this.#ended) return;
    this.#events.push(event);
    this.#wakeReader?.();
    if (this.#events.length < this.#most) return;
    await new Promise<void>((resolve) => {
      this.#wakeWriter = resolve;
    });
  }

  /** Nothing more comes; with an error, the reader meets it behind what is there. */
  end(failure?: { error: unknown }): void {
    this.#ended = true;
    this.#failure ??= failure;
    this.#wakeReader?.();
    this.#wakeWriter?.();
  }

  async *read(): AsyncGenerator<Event> {
    try {
      for (;;) {
        const event = this.#events.shift();
        if (event !== undefined) {
          this.#wakeWriter?.();
          yield event;
          continue;
        }
        if (this.#failure) throw this.#failure.error;
        if (this.#ended) return;
        await new Promise<void>((resolve) => {
          this.#wakeReader = resolve;
        });
      }
    } finally {
      this.end();
    }
  }
}
