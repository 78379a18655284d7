import { type Clock, sleep } from '../clock.ts';

export interface LateDeps<T> {
  /** Rejects when it cannot be had now. */
  open(signal: AbortSignal): Promise<T>;
  close(opened: T): Promise<void>;
  /** Told once it is there. */
  opened?(): void;
  /** Told each time that it could not be opened. */
  failed(error: unknown): void;
  clock: Clock;
}

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 300_000;

/** What may be away when the server starts, such as a model: nobody waits for it, and it is tried again after ever longer pauses. */
export class Late<T> {
  readonly #deps: LateDeps<T>;
  readonly #stopping = new AbortController();
  #current: T | undefined;
  #opening: Promise<void> = Promise.resolve();

  constructor(deps: LateDeps<T>) {
    this.#deps = deps;
  }

  /** Undefined as long as it is not there. */
  get current(): T | undefined {
    return this.#current;
  }

  /** Begins to open it. Resolves after the first attempt, or earlier after so many milliseconds. */
  async start(waitMs: number): Promise<void> {
    const first = this.#open();
    this.#opening = first.then((open) => (open ? undefined : this.#retry()));
    await Promise.race([first, sleep(this.#deps.clock, waitMs)]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the server stops'));
    await this.#opening;
    if (this.#current !== undefined) await this.#deps.close(this.#current);
  }

  async #retry(): Promise<void> {
    const { signal } = this.#stopping;
    for (let pause = FIRST_PAUSE_MS; !signal.aborted; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      await sleep(this.#deps.clock, pause, signal).catch(() => undefined);
      if (signal.aborted || (await this.#open())) return;
    }
  }

  /** Whether it is there now. */
  async #open(): Promise<boolean> {
    const { signal } = this.#stopping;
    try {
      this.#current = await this.#deps.open(signal);
      this.#deps.opened?.();
      return true;
    } catch (error) {
      if (!signal.aborted) this.#deps.failed(error);
      return false;
    }
  }
}
