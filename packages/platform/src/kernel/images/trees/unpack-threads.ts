import { BoundedQueue } from '../../bounded-queue.ts';
import type { UnpackJob, UnpackReport } from './unpack-job.ts';
import { unpackInThread } from './unpack-job.ts';

/** Bounds how many images are unpacked at the same time; the others wait their turn, first come first served. */
export class UnpackThreads {
  readonly #queue: BoundedQueue;

  constructor(most: number) {
    this.#queue = new BoundedQueue({ running: most, waiting: Number.POSITIVE_INFINITY });
  }

  /** As `unpackInThread`, when a thread is free. */
  run(job: UnpackJob, signal: AbortSignal): Promise<UnpackReport> {
    return this.#queue.run(() => unpackInThread(job, signal), signal);
  }
}
