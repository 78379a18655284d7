import type { UnpackJob, UnpackReport } from './unpack-job.ts';
import { unpackInThread } from './unpack-job.ts';

/** Bounds how many images are unpacked at the same time; the others wait their turn, first come first served. */
export class UnpackThreads {
  readonly #most: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  /** As `unpackInThread`, when a thread is free. */
  async run(job: UnpackJob, signal: AbortSignal): Promise<UnpackReport> {
    if (this.#running >= this.#most) await this.#turn(signal);
    else this.#running += 1;
    try {
      return await unpackInThread(job, signal);
    } finally {
      // The place goes to the next one, or is given up.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(go), 1);
        reject(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(go);
    });
  }
}
