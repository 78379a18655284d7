import { createHash } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import type { JobDefinition, JobQueue, JobRun, Jobs } from '../../kernel/jobs/index.ts';
import type { Line } from './extraction-job-store.ts';

export interface LineQueuesDeps {
  jobs: Jobs;
  clock: Clock;
  /** Topics that batches are delivered to. */
  topics: readonly string[];
  /** The topic that a line's batches go to now; undefined for one whose batches are extracted from. */
  topicOf(line: Line): Promise<string | undefined>;
  /** Does what waits in a line. */
  run(run: JobRun<Line>): Promise<void>;
  /** Told when a line ended while somebody wanted it to go on. */
  onMissed(): void;
  /** How a run is tried again, and how long it may take. */
  settings: Pick<JobDefinition<Line>, 'retries' | 'retryDelay' | 'timeout'>;
}

/** Lines of one queue that are worked on at once. */
const AT_ONCE = 2;
/** How long it is believed that a line which was asked for waits for its turn. */
const BELIEVED_MS = 30_000;
const MAX_BELIEVED = 10_000;

/**
 * Turns of lines of jobs, one entry for each line in the queue of the server's jobs. Deliveries to a topic have a queue of their own: a
 * receiver that does not answer keeps nothing else waiting. A line that waits is not asked for again: there may be thousands.
 */
export class LineQueues {
  readonly #deps: LineQueuesDeps;
  readonly #extraction: JobQueue<Line>;
  readonly #deliveries: ReadonlyMap<string, JobQueue<Line>>;
  readonly #waiting = new Map<string, number>();
  readonly #running = new Set<string>();
  readonly #missed = new Set<string>();

  constructor(deps: LineQueuesDeps) {
    this.#deps = deps;
    this.#extraction = this.#define('memory-lines');
    this.#deliveries = new Map(
      deps.topics.map((topic) => [topic, this.#define(`memory-deliveries-${shortHash(topic)}`)]),
    );
  }

  /** Sees to it that the line has its turn. */
  async enqueue({ memoryId, strategyId, actorId, sessionId }: Line): Promise<void> {
    const line = { memoryId, strategyId, actorId, sessionId };
    const key = keyOf(line);
    const now = this.#deps.clock.monotonic();
    if ((this.#waiting.get(key) ?? 0) > now) return;
    if (this.#waiting.size >= MAX_BELIEVED) this.#waiting.clear();
    this.#waiting.set(key, now + BELIEVED_MS);
    const ran = this.#running.has(key);
    const id = await this.#send(line, key);
    if (id !== undefined) return;
    // Has it looked for the last time before what is wanted was there?
    if (this.#running.has(key)) this.#missed.add(key);
    else if (ran) this.#miss(key);
  }

  async #send(line: Line, key: string): Promise<string | undefined> {
    try {
      const queue = await this.#queueOf(line);
      return await queue.enqueue(line, { key });
    } catch (error) {
      this.#waiting.delete(key);
      throw error;
    }
  }

  #define(name: string): JobQueue<Line> {
    const queue: JobQueue<Line> = this.#deps.jobs.define(name, {
      ...this.#deps.settings,
      parse: parseLine,
      keyed: 'exclusive',
      concurrency: AT_ONCE,
      run: (run) => this.#take(run, queue),
    });
    return queue;
  }

  async #take(run: JobRun<Line>, queue: JobQueue<Line>): Promise<void> {
    const key = keyOf(run.data);
    this.#waiting.delete(key);
    // Its strategy may have another topic by now.
    if ((await this.#queueOf(run.data)) !== queue) return this.enqueue(run.data);
    this.#running.add(key);
    try {
      await this.#deps.run(run);
    } finally {
      this.#running.delete(key);
      if (this.#missed.has(key)) this.#miss(key);
    }
  }

  #miss(key: string): void {
    this.#missed.delete(key);
    this.#waiting.delete(key);
    this.#deps.onMissed();
  }

  async #queueOf(line: Line): Promise<JobQueue<Line>> {
    const topic = await this.#deps.topicOf(line);
    return (topic === undefined ? undefined : this.#deliveries.get(topic)) ?? this.#extraction;
  }
}

function keyOf({ memoryId, strategyId, actorId, sessionId }: Line): string {
  return [memoryId, strategyId, actorId, sessionId].join(' ');
}

/** Fit for the name of a queue. */
function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

function parseLine(value: unknown): Line {
  const { memoryId, strategyId, actorId, sessionId } = value as Partial<Record<keyof Line, unknown>>;
  const parts = [memoryId, strategyId, actorId, sessionId];
  if (!parts.every((part) => typeof part === 'string')) throw new Error('an entry of the queue names no line of jobs');
  return {
    memoryId: String(memoryId),
    strategyId: String(strategyId),
    actorId: String(actorId),
    sessionId: String(sessionId),
  };
}
