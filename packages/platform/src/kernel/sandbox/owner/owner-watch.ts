import { type Clock, sleep } from '../../clock.ts';
import { isAlive, type ProcessIdentity } from '../../processes/index.ts';

const LOOK_MS = 200;

/** Notices the end of processes that are not our children, which owners of sandboxes made by an earlier server are: one timer for all. */
export class OwnerWatch {
  readonly #clock: Clock;
  readonly #closing: AbortSignal;
  readonly #watched = new Map<ProcessIdentity, () => void>();
  #looking = false;

  /** After `closing` aborts nobody is told any more: the sandboxes are the next server's. */
  constructor(clock: Clock, closing: AbortSignal) {
    this.#clock = clock;
    this.#closing = closing;
  }

  /** Resolves when the process has ended; looked for every 200 ms. */
  ended(owner: ProcessIdentity): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#watched.set(owner, resolve));
    this.#arm();
    return ended;
  }

  #arm(): void {
    if (this.#looking || this.#watched.size === 0 || this.#closing.aborted) return;
    this.#looking = true;
    void sleep(this.#clock, LOOK_MS, this.#closing)
      .then(
        () => this.#look(),
        () => undefined,
      )
      .finally(() => {
        this.#looking = false;
        this.#arm();
      });
  }

  async #look(): Promise<void> {
    for (const [owner, tell] of [...this.#watched]) {
      if (this.#closing.aborted) return;
      if (await isAlive(owner).catch(() => true)) continue;
      this.#watched.delete(owner);
      tell();
    }
  }
}
