import { type data, errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import type { JobRun, Jobs } from '../../kernel/jobs/index.ts';
import { ModelError } from '../../kernel/models/index.ts';
import { NotificationError, type Topics } from '../../kernel/notifications/index.ts';
import type { ObjectWriter } from '../../kernel/objects/index.ts';
import type { Database } from '../../kernel/storage/index.ts';
import { eventTime } from './event-id.ts';
import { keepSession } from './event-store.ts';
import type { Batch, Extractor } from './extraction/candidate.ts';
import { applyChanges } from './extraction/changes.ts';
import { type ExtractDeps, extractBatch, UnfitBatchError } from './extraction/extract.ts';
import { type Message, messagesOf, type SaidIn } from './extraction/message.ts';
import * as store from './extraction-job-store.ts';
import { LineQueues } from './line-queues.ts';
import type { Memories } from './memories.ts';
import { extractionKind, isFed, type Memory, type Strategy, selfManaged } from './memory.ts';
import { checkVariables } from './namespace-variables.ts';
import { planJobs } from './plan-jobs.ts';
import { deliverBatch } from './self-managed/delivery.ts';

export interface ExtractionJobsDeps {
  database: Database;
  clock: Clock;
  log: Logger;
  jobs: Jobs;
  memories: Memories;
  /** The extractor for a strategy: by a model when there is one, by rules otherwise. */
  extractorFor(strategy: Strategy): Extractor;
  nearest: ExtractDeps['nearest'];
  /** Where batches of self-managed strategies go. */
  objects: ObjectWriter;
  topics: Topics;
  newRecordId(): string;
  newJobId(): string;
  newSessionId(): string;
  /** How long events may gather before they are extracted together, in milliseconds. */
  delayMs: number;
  /** Told after a job has written records. */
  onContent(): void;
}

/** Attempts, seconds apart; then the job is kept as failed until someone starts it again. */
const ATTEMPTS = 4;
const RETRY_DELAY_SECONDS = 2;
const TIMEOUT_SECONDS = 600;
/** How long one run of a line may begin further jobs; what is left is taken up by the next run. */
const RUN_MS = 300_000;
/** How often to look for events that another server or an earlier life left behind. */
const SWEEP_MS = 30_000;
/** When to look again for a line whose run may have ended just before a job joined it. */
const BUSY_MS = 1_000;
const LINES_AT_ONCE = 500;

/**
 * Long-term records out of events, in the background. Events that wait become jobs, one for each strategy of each
 * session; a job's effects and its end are one transaction, so it happens once however often it is begun. The queue holds
 * one entry for each line of jobs, however many wait in it: a crash or a restart can only repeat it, never pile it up.
 */
export class ExtractionJobs {
  readonly #deps: ExtractionJobsDeps;
  readonly #queues: LineQueues;
  #cancel: (() => void) | undefined;
  #due = Number.POSITIVE_INFINITY;
  #planning: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: ExtractionJobsDeps) {
    this.#deps = deps;
    this.#queues = new LineQueues({
      jobs: deps.jobs,
      clock: deps.clock,
      topics: deps.topics.arns,
      topicOf: (line) => this.#topicOf(line),
      run: (run) => this.#run(run),
      onMissed: () => this.#wake(BUSY_MS),
      settings: { retries: ATTEMPTS - 1, retryDelay: RETRY_DELAY_SECONDS, timeout: TIMEOUT_SECONDS },
    });
  }

  /** Goes on with what was left. After the job queue has started. */
  async start(): Promise<void> {
    this.#wake(0);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await this.#planning;
  }

  /** Says that an event waits to be extracted from. */
  notify(): void {
    this.#wake(this.#deps.delayMs);
  }

  /** Takes in content that is to become records but no event; gives its session. Durable when it returns. */
  async ingest(input: data.IngestDataInput, memory: Memory): Promise<string> {
    const { database, clock, newJobId, newSessionId } = this.#deps;
    const variables = input.extractionConfig?.namespaceVariables ?? {};
    checkVariables(variables, memory.data.namespaceKeys ?? []);
    const sessionId = input.sessionId ?? newSessionId();
    const createdAt = new Date(clock.now());
    const inline = {
      at: eventTime(input.contentTimestamp, 'contentTimestamp'),
      payload: input.source.inline.payload as data.PayloadType[],
      metadata: input.metadata ?? {},
    };
    // Nothing says when ingested data would be complete, so no trigger of a self-managed strategy is waited for.
    const jobs = memory.data.strategies.filter(isFed).map(
      (strategy): store.NewJob => ({
        id: newJobId(),
        memoryId: memory.id,
        accountId: memory.accountId,
        strategyId: strategy.id,
        actorId: input.actorId,
        sessionId,
        status: 'QUEUED',
        events: [],
        inline,
        variables,
        createdAt,
      }),
    );
    await database.transaction(async (tx) => {
      await keepSession(tx, { memoryId: memory.id, actorId: input.actorId, sessionId }, createdAt);
      for (const job of jobs) await store.addJob(tx, job);
    });
    for (const job of jobs) await this.#queues.enqueue(job);
    return sessionId;
  }

  async listFailed(
    memoryId: string,
    filter: data.ExtractionJobFilterInput,
    limit: number,
    after: string | undefined,
  ): Promise<{ items: data.ExtractionJobMetadata[]; next: string | undefined }> {
    const cursor = after === undefined ? undefined : Number(after);
    const found = await store.failedJobs(this.#deps.database, memoryId, filter, limit + 1, cursor);
    const shown = found.slice(0, limit);
    const last = shown.at(-1);
    return { items: shown.map(jobView), next: found.length > limit && last ? String(last.seq) : undefined };
  }

  /** Starts a failed job again; throws ResourceNotFoundException when there is none of that id. */
  async restart(memoryId: string, id: string): Promise<void> {
    const job = await store.requeueJob(this.#deps.database, memoryId, id);
    if (!job) throw errors.resourceNotFound(`There is no failed extraction job ${id} in this memory.`);
    await this.#queues.enqueue(job);
  }

  async #topicOf({ memoryId, strategyId }: store.Line): Promise<string | undefined> {
    const memory = await this.#deps.memories.findById(memoryId);
    const strategy = memory?.data.strategies.find(({ id }) => id === strategyId);
    return strategy && selfManaged(strategy)?.invocationConfiguration.topicArn;
  }

  #wake(ms: number): void {
    const due = this.#deps.clock.monotonic() + ms;
    if (this.#stopped || due >= this.#due) return;
    this.#cancel?.();
    this.#due = due;
    this.#cancel = this.#deps.clock.after(ms, () => {
      this.#due = Number.POSITIVE_INFINITY;
      // One look at a time: on a busy machine they would otherwise pile up.
      this.#planning = this.#planning.then(() => this.#plan());
    });
  }

  async #plan(): Promise<void> {
    const { log } = this.#deps;
    try {
      const { more, nextIdleAt = Number.POSITIVE_INFINITY } = await planJobs(this.#deps);
      for (const line of await store.waitingLines(this.#deps.database, LINES_AT_ONCE)) {
        if (this.#stopped) return;
        await this.#queues.enqueue(line);
      }
      const idleMs = Math.max(this.#deps.delayMs, nextIdleAt - this.#deps.clock.now());
      this.#wake(more ? this.#deps.delayMs : Math.min(SWEEP_MS, idleMs));
    } catch (error) {
      log.warn({ err: error }, 'events could not be given to extraction; it is tried again');
      this.#wake(RETRY_DELAY_SECONDS * 1000);
    }
  }

  /** Does what waits in a line, one job after the other. A job that fails is tried again before the next one is begun. */
  async #run(run: JobRun<store.Line>): Promise<void> {
    const { database, clock } = this.#deps;
    const end = clock.monotonic() + RUN_MS;
    while (clock.monotonic() < end && !run.signal.aborted) {
      const job = await store.nextInLine(database, run.data);
      if (!job) return;
      try {
        await this.#extract(job, run);
      } catch (error) {
        // A server that stops is no fault of the batch.
        run.signal.throwIfAborted();
        const unfit = error instanceof UnfitBatchError;
        const last = await store.countFailure(database, job.id, reasonOf(error), unfit ? 1 : ATTEMPTS);
        if (!last) throw error;
        run.log.warn({ err: error, memoryId: job.memoryId, job: job.id }, 'a batch of events was given up');
      }
    }
  }

  async #extract(
    job: store.ExtractionJob,
    { signal, span }: Pick<JobRun<store.Line>, 'signal' | 'span'>,
  ): Promise<void> {
    const { database, clock, extractorFor, newRecordId, nearest, memories } = this.#deps;
    const memory = await memories.find(job.accountId, job.memoryId);
    const strategy = memory?.data.strategies.find(({ id }) => id === job.strategyId);
    const kind = strategy && extractionKind(strategy);
    const delivery = strategy && selfManaged(strategy);
    if (delivery) await deliverBatch({ ...this.#deps, executor: database }, job, delivery, signal);
    // Delivered; or the memory or the strategy was deleted meanwhile, and there is nobody to extract for.
    if (!memory || !strategy || !kind) return void (await store.endJob(database, job.id));
    const now = (): Date => new Date(clock.now());
    const values = {
      actorId: job.actorId,
      sessionId: job.sessionId,
      memoryStrategyId: strategy.id,
      variables: job.variables,
    };
    const batch: Batch = { memory, strategy, kind, values, messages: await this.#messages(job), span };
    const changes = await extractBatch(
      batch,
      extractorFor(strategy),
      { executor: database, newRecordId, now, nearest },
      signal,
    );
    await database.transaction(async (tx) => {
      // Ended by an earlier run whose answer got lost: nothing may happen twice.
      if (await store.endJob(tx, job.id)) await applyChanges(tx, changes, now());
    });
    if (changes.length > 0) this.#deps.onContent();
  }

  async #messages(job: store.ExtractionJob): Promise<Message[]> {
    if (job.inline) return messagesOf({ ...job.inline, eventId: job.id, at: new Date(job.inline.at) });
    const rows = await this.#deps.database.query<{
      event_id: string;
      at: Date;
      payload: string;
      metadata: SaidIn['metadata'];
    }>(
      `SELECT event_id, at, payload, metadata FROM memory_events WHERE memory_id = $1 AND actor_id = $2 AND session_id = $3
         AND event_id IN (SELECT jsonb_array_elements_text($4::jsonb)) ORDER BY event_id`,
      [job.memoryId, job.actorId, job.sessionId, JSON.stringify(job.events.map(({ eventId }) => eventId))],
    );
    return rows.flatMap(({ event_id: eventId, at, payload, metadata }) =>
      messagesOf({ eventId, at, payload: JSON.parse(payload), metadata }),
    );
  }
}

/** What a user is told; errors of the platform's own may name what is not his to know. */
function reasonOf(error: unknown): string {
  const forUsers =
    error instanceof UnfitBatchError || error instanceof ModelError || error instanceof NotificationError;
  return forUsers ? error.message : 'The platform failed to do it; its log says why.';
}

function jobView(job: store.ExtractionJob): data.ExtractionJobMetadata {
  const messagesList = job.events.flatMap(({ eventId, count }) =>
    Array.from({ length: count }, (_, messageIndex) => ({ eventId, messageIndex })),
  );
  return {
    jobID: job.id,
    messages: { messagesList },
    status: 'FAILED',
    strategyId: job.strategyId,
    sessionId: job.sessionId,
    actorId: job.actorId,
    ...(job.failureReason === undefined ? {} : { failureReason: job.failureReason }),
  };
}
