import { BoundedQueue, QueueFullError } from '../bounded-queue.ts';
import { SandboxError } from './sandbox.ts';

/** Lets `running` jobs work at once and `waiting` more wait; beyond that it refuses with SandboxError `capacity`. */
export class CreateQueue {
  readonly #limits: { running: number; waiting: number };
  readonly #queue: BoundedQueue;

  constructor(limits: { running: number; waiting: number }) {
    this.#limits = limits;
    this.#queue = new BoundedQueue(limits);
  }

  async run<T>(job: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    let begun = false;
    const begin = (): Promise<T> => {
      begun = true;
      return job();
    };
    try {
      return await this.#queue.run(begin, signal);
    } catch (error) {
      throw begun ? error : this.#refusal(error);
    }
  }

  #refusal(cause: unknown): SandboxError {
    const { running, waiting } = this.#limits;
    return cause instanceof QueueFullError
      ? new SandboxError(
          'capacity',
          `${running} sandboxes are being made and ${waiting} wait already. Try again in a moment.`,
        )
      : new SandboxError('failed', 'The sandbox is not wanted any more.', { cause });
  }
}
