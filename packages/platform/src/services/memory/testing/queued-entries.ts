import type { Entry } from '../extraction-job-store.ts';
import type { LineQueues } from '../line-queues.ts';

/** Keeps what is queued until it is asked for. */
export class QueuedEntries implements Pick<LineQueues, 'enqueue' | 'look'> {
  #entries: Entry[] = [];

  async enqueue(entry: Entry): Promise<void> {
    this.#entries.push(entry);
  }

  look(): void {}

  take(): Entry[] {
    return this.#entries.splice(0);
  }
}
