import { createHash } from 'node:crypto';
import type { JobDefinition, JobQueue, JobRun, Jobs } from '../../kernel/jobs/index.ts';
import type { Executor } from '../../kernel/storage/index.ts';
import { object, stored, text } from '../../kernel/stored-shape.ts';
import type { Entry, Line } from './extraction-job-store.ts';

export interface LineQueuesDeps {
  jobs: Jobs;
  /** Topics that batches are delivered to. */
  topics: readonly string[];
  /** Reads a job; undefined when it has ended. */
  open(entry: Entry): Promise<OpenJob | undefined>;
  /** Keeps a job that has used up its attempts. */
  giveUp(run: JobRun<Entry>, error: unknown): Promise<void>;
  /** How a job is tried again, and how long it may take. */
  settings: Pick<JobDefinition<Entry>, 'retries' | 'retryDelay' | 'timeout'>;
}

export interface OpenJob {
  /** The topic that its batch goes to now; undefined when it is extracted from. */
  topic: string | undefined;
  run(run: JobRun<Entry>): Promise<void>;
}

/** Jobs of one queue that are done at once. */
const AT_ONCE = 2;
const EXTRACTION = 'memory-extraction';
const DELIVERIES = 'memory-deliveries-';

/**
 * The queues of memory's jobs: those of one line are done one after the other. Deliveries to a topic have a queue of their own: a receiver
 * that does not answer keeps nothing else waiting.
 */
export class LineQueues {
  readonly #deps: LineQueuesDeps;
  readonly #extraction: JobQueue<Entry>;
  readonly #deliveries: ReadonlyMap<string, JobQueue<Entry>>;

  constructor(deps: LineQueuesDeps) {
    this.#deps = deps;
    // What was to go to a topic that is configured no more fails there, and says why.
    this.#extraction = this.#define(EXTRACTION, { inherits: (queue) => queue.startsWith(DELIVERIES) });
    this.#deliveries = new Map(deps.topics.map((topic) => [topic, this.#define(`${DELIVERIES}${shortHash(topic)}`)]));
  }

  /** Has the job done after those of its line, once the transaction has committed and `look` was called. */
  async enqueue(
    { id, memoryId, strategyId, actorId, sessionId }: Entry,
    topic: string | undefined,
    within: Executor,
  ): Promise<void> {
    const entry = { id, memoryId, strategyId, actorId, sessionId };
    await this.#queueOf(topic).enqueue(entry, { key: keyOf(entry), within });
  }

  /** Begins what transactions have brought. */
  look(): void {
    for (const queue of [this.#extraction, ...this.#deliveries.values()]) queue.look();
  }

  #define(name: string, more: Pick<JobDefinition<Entry>, 'inherits'> = {}): JobQueue<Entry> {
    const queue: JobQueue<Entry> = this.#deps.jobs.define(name, {
      ...this.#deps.settings,
      ...more,
      ...stored<Entry>(object({ id: text, memoryId: text, strategyId: text, actorId: text, sessionId: text })),
      concurrency: AT_ONCE,
      run: (run) => this.#take(run, queue),
      giveUp: (run, error) => this.#deps.giveUp(run, error),
    });
    return queue;
  }

  async #take(run: JobRun<Entry>, queue: JobQueue<Entry>): Promise<void> {
    const job = await this.#deps.open(run.data);
    if (!job) return;
    // Its strategy may have another topic by now.
    const now = this.#queueOf(job.topic);
    if (now === queue) return job.run(run);
    await now.enqueue(run.data, { key: keyOf(run.data) });
  }

  #queueOf(topic: string | undefined): JobQueue<Entry> {
    return (topic === undefined ? undefined : this.#deliveries.get(topic)) ?? this.#extraction;
  }
}

/** Also written by the migration memory/0009-jobs. */
function keyOf({ memoryId, strategyId, actorId, sessionId }: Line): string {
  return [memoryId, strategyId, actorId, sessionId].join(' ');
}

/** Fit for the name of a queue. */
function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
