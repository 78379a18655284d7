import { beforeEach, describe, expect, it } from 'vitest';
import type { JobDefinition, JobQueue, JobRun, Jobs } from '../../kernel/jobs/index.ts';
import type { Executor } from '../../kernel/storage/index.ts';
import { silent } from '../../kernel/storage/testing/databases.ts';
import { NO_SPAN } from '../../kernel/telemetry/index.ts';
import type { Entry } from './extraction-job-store.ts';
import { LineQueues } from './line-queues.ts';

/** Queues that run only when told to. */
class FakeJobs implements Jobs {
  readonly waiting: { queue: string; key?: string; within?: Executor; run: () => Promise<void> }[] = [];
  readonly looked: string[] = [];
  readonly heirs = new Map<string, JobDefinition<never>['inherits']>();

  define<Data extends object>(queue: string, definition: JobDefinition<Data>): JobQueue<Data> {
    this.heirs.set(queue, definition.inherits);
    const enqueue: JobQueue<Data>['enqueue'] = async (data, { key, within } = {}) => {
      const id = String(this.waiting.length);
      const run: JobRun<Data> = {
        id,
        data,
        attempt: 1,
        signal: new AbortController().signal,
        span: NO_SPAN,
        log: silent,
        end: async () => true,
      };
      this.waiting.push({
        queue,
        run: () => definition.run(run),
        ...(key === undefined ? {} : { key }),
        ...(within && { within }),
      });
      return id;
    };
    return { enqueue, look: () => this.looked.push(queue), listFailed: async () => [], retry: async () => undefined };
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

const entry = (sessionId: string): Entry => ({
  id: `j${sessionId}`,
  memoryId: 'm',
  strategyId: 's',
  actorId: 'a',
  sessionId,
});
const tx: Executor = { query: async () => [], execute: async () => 0, exec: async () => [] };
let jobs: FakeJobs;
let topic: string | undefined;
let run: (entry: Entry) => Promise<void>;
let queues: LineQueues;
const enqueue = (sessionId: string): Promise<void> => queues.enqueue(entry(sessionId), topic, tx);

beforeEach(() => {
  jobs = new FakeJobs();
  topic = undefined;
  run = async () => undefined;
  queues = new LineQueues({
    jobs,
    topics: ['one', 'two'],
    open: async (opened) => ({ topic, run: () => run(opened) }),
    giveUp: async () => undefined,
    settings: {},
  });
});

describe('jobs of lines', () => {
  it('are in a queue of extraction, or in one of the topic', async () => {
    await enqueue('1');
    topic = 'one';
    await enqueue('2');
    topic = 'two';
    await enqueue('3');
    topic = 'gone';
    await enqueue('4');
    const [extraction, one, two, gone] = jobs.waiting.map(({ queue }) => queue);
    expect([extraction, gone]).toEqual(['memory-extraction', 'memory-extraction']);
    expect(one).toMatch(/^memory-deliveries-/);
    expect(two).toMatch(/^memory-deliveries-/);
    expect(one).not.toBe(two);
  });

  it('move to another queue with the topic of their strategy', async () => {
    const ran: string[] = [];
    run = async ({ sessionId }) => void ran.push(sessionId);
    await enqueue('1');
    topic = 'one';
    await jobs.next(/extraction/);
    expect(ran).toEqual([]);
    await jobs.next(/deliveries/);
    expect(ran).toEqual(['1']);
  });

  it('are keyed by their line, and exist with the transaction that brings them', async () => {
    for (const sessionId of ['1', '1', '2']) await enqueue(sessionId);
    expect(jobs.waiting.map(({ key }) => key)).toEqual(['m s a 1', 'm s a 1', 'm s a 2']);
    expect(jobs.waiting.every(({ within }) => within === tx)).toBe(true);
    queues.look();
    expect(jobs.looked).toEqual([...jobs.heirs.keys()]);
  });

  it('of a topic that is configured no more are taken by extraction, which says why they fail', () => {
    const heirs = [...jobs.heirs].flatMap(([name, inherits]) => (inherits?.('memory-deliveries-gone') ? [name] : []));
    expect(heirs).toEqual(['memory-extraction']);
    expect(jobs.heirs.get('memory-extraction')?.('another')).toBe(false);
  });
});
