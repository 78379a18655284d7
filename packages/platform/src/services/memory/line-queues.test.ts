import { beforeEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import type { JobDefinition, JobQueue, JobRun, Jobs } from '../../kernel/jobs/index.ts';
import { silent } from '../../kernel/storage/testing/databases.ts';
import { NO_SPAN } from '../../kernel/telemetry/index.ts';
import type { Line } from './extraction-job-store.ts';
import { LineQueues } from './line-queues.ts';

/** Queues that keep one entry of each key, run only when told to, and count how often they are asked. */
class FakeJobs implements Jobs {
  asked = 0;
  readonly waiting: { queue: string; run: () => Promise<void> }[] = [];
  readonly #there = new Set<string>();

  define<Data extends object>(queue: string, definition: JobDefinition<Data>): JobQueue<Data> {
    const enqueue: JobQueue<Data>['enqueue'] = async (data, { key = '' } = {}) => {
      this.asked++;
      const id = `${queue} ${key}`;
      if (this.#there.has(id)) return undefined;
      this.#there.add(id);
      const run: JobRun<Data> = {
        id,
        data,
        attempt: 1,
        signal: new AbortController().signal,
        span: NO_SPAN,
        log: silent,
      };
      this.waiting.push({ queue, run: () => definition.run(run).finally(() => this.#there.delete(id)) });
      return id;
    };
    return { enqueue, listFailed: async () => [], retry: async () => undefined };
  }
  async start(): Promise<void> {}
  async stop(): Promise<void> {}

  /** Runs the first that waits, unless it is of another queue. */
  async next(queue?: RegExp): Promise<void> {
    const one = this.waiting.shift();
    if (queue) expect(one?.queue).toMatch(queue);
    await one?.run();
  }
}

const line = (sessionId: string): Line => ({ memoryId: 'm', strategyId: 's', actorId: 'a', sessionId });
let jobs: FakeJobs;
let clock: FakeClock;
let topic: string | undefined;
let run: (line: Line) => Promise<void>;
let missed: number;
let queues: LineQueues;

const openQueues = (topicOf: () => Promise<string | undefined>): LineQueues =>
  new LineQueues({
    jobs,
    clock,
    topics: ['one', 'two'],
    topicOf,
    run: ({ data }) => run(data),
    onMissed: () => missed++,
    settings: {},
  });

beforeEach(() => {
  jobs = new FakeJobs();
  clock = new FakeClock();
  topic = undefined;
  run = async () => undefined;
  missed = 0;
  queues = openQueues(async () => topic);
});

describe('turns of lines', () => {
  it('are in a queue of extraction, or in one of the topic', async () => {
    await queues.enqueue(line('1'));
    topic = 'one';
    await queues.enqueue(line('2'));
    topic = 'two';
    await queues.enqueue(line('3'));
    topic = 'gone';
    await queues.enqueue(line('4'));
    const [extraction, one, two, gone] = jobs.waiting.map(({ queue }) => queue);
    expect([extraction, gone]).toEqual(['memory-lines', 'memory-lines']);
    expect(one).toMatch(/^memory-deliveries-/);
    expect(two).toMatch(/^memory-deliveries-/);
    expect(one).not.toBe(two);
  });

  it('move to another queue with the topic of their strategy', async () => {
    const ran: string[] = [];
    run = async ({ sessionId }) => void ran.push(sessionId);
    await queues.enqueue(line('1'));
    topic = 'one';
    await jobs.next(/lines/);
    expect(ran).toEqual([]);
    await jobs.next(/deliveries/);
    expect(ran).toEqual(['1']);
  });

  it('are not asked for again while they wait, but after a while', async () => {
    for (let n = 0; n < 100; n++) await queues.enqueue(line('1'));
    expect(jobs.asked).toBe(1);
    await clock.advance(30_001);
    await queues.enqueue(line('1'));
    expect(jobs.asked).toBe(2);
    await jobs.next();
    await queues.enqueue(line('1'));
    expect(jobs.asked).toBe(3);
  });

  it('are missed by whoever came while one was about to end', async () => {
    const ending = Promise.withResolvers<void>();
    run = () => ending.promise;
    await queues.enqueue(line('1'));
    const running = jobs.next();
    await clock.advance(0);
    await queues.enqueue(line('1'));
    expect(missed).toBe(0);
    ending.resolve();
    await running;
    expect(missed).toBe(1);
    await queues.enqueue(line('1'));
    expect(jobs.waiting).toHaveLength(1);
  });

  it('are asked for again when the queue could not be asked', async () => {
    let broken = true;
    const failing = openQueues(async () => {
      if (broken) throw new Error('no database');
      return undefined;
    });
    await expect(failing.enqueue(line('1'))).rejects.toThrow('no database');
    broken = false;
    await failing.enqueue(line('1'));
    expect(jobs.waiting).toHaveLength(1);
  });
});
