import { SandboxError } from './sandbox.ts';

/** Lets `running` jobs work at once and `waiting` more wait; beyond that it refuses with SandboxError `capacity`. */
export class CreateQueue {
  #limits: { running: number; waiting: number };
  #running = 0;
  #waiting: (() => void)[] = [];

  constructor(limits: { running: number; waiting: number }) {
    this.#limits = limits;
  }

  async run<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (this.#running >= this.#limits.running) await this.#turn(signal);
    else this.#running++;
    try {
      return await job();
    } finally {
      // The place passes to the next in line, if there is one.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }

  #turn(signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.length >= this.#limits.waiting) {
      const { running, waiting } = this.#limits;
      throw new SandboxError(
        'capacity',
        `${running} sandboxes are being made and ${waiting} wait already. Try again in a moment.`,
      );
    }
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      const onAbort = (): void => {
        const at = this.#waiting.indexOf(begin);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(new SandboxError('failed', 'The sandbox is not wanted any more.', { cause: signal?.reason }));
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push(begin);
    });
  }
}
