import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { SandboxProvider } from '../sandbox/index.ts';

const FIRST_MS = 30_000;
const MAX_MS = 600_000;

/** What is left of ended sandboxes because it could not be removed; tried again, after twice as long each time, until nothing is left. */
export class Leftovers {
  readonly #provider: Pick<SandboxProvider, 'sweep'>;
  readonly #clock: Clock;
  readonly #log: Logger;
  #wait = FIRST_MS;
  #nextAt = Number.POSITIVE_INFINITY;

  constructor({ provider, clock, log }: { provider: Pick<SandboxProvider, 'sweep'>; clock: Clock; log: Logger }) {
    this.#provider = provider;
    this.#clock = clock;
    this.#log = log;
  }

  /** Something could not be removed. */
  note(err: unknown, sandboxId?: string): void {
    this.#log.error(
      { err, ...(sandboxId === undefined ? {} : { sandboxId }) },
      'what is left of ended sandboxes could not be removed; it is tried again',
    );
    this.#nextAt = Math.min(this.#nextAt, this.#clock.monotonic() + this.#wait);
  }

  /** Tries again when it is time; called about once a second. */
  tick(now: number): void {
    if (now < this.#nextAt) return;
    this.#nextAt = Number.POSITIVE_INFINITY;
    void this.#try();
  }

  async #try(): Promise<void> {
    try {
      const removed = await this.#provider.sweep();
      this.#log.info({ removed }, 'removed what was left of ended sandboxes');
      this.#wait = FIRST_MS;
    } catch (error) {
      this.#wait = Math.min(MAX_MS, this.#wait * 2);
      this.note(error);
    }
  }
}
