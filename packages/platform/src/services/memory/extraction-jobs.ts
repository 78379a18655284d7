import { type data, errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import type { JobRun, Jobs } from '../../kernel/jobs/index.ts';
import { ModelError } from '../../kernel/models/index.ts';
import { NotificationError, type Topics } from '../../kernel/notifications/index.ts';
import type { ObjectWriter } from '../../kernel/objects/index.ts';
import type { Database, Executor } from '../../kernel/storage/index.ts';
import { storedText } from '../../kernel/stored-shape.ts';
import { storedMetadata, storedPayload } from './event.ts';
import { eventTime } from './event-id.ts';
import { keepSession } from './event-store.ts';
import { type Batch, type Extractor, UnfitBatchError, type Unread } from './extraction/candidate.ts';
import { applyChanges } from './extraction/changes.ts';
import { type ExtractDeps, extractBatch } from './extraction/extract.ts';
import { type Message, messagesOf } from './extraction/message.ts';
import * as store from './extraction-job-store.ts';
import { LineQueues, type OpenJob } from './line-queues.ts';
import type { Memories } from './memories.ts';
import { extractionKind, isFed, type Memory, type Strategy, selfManaged, topicOf } from './memory.ts';
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
/** How often to look for events that another server or an earlier life left behind. */
const SWEEP_MS = 30_000;

/**
 * Long-term records out of events, in the background. Events that wait become jobs, one for each strategy of each
 * session, and with each an entry of the server's jobs, which has it done. A job's effects and its end are one transaction, so it happens
 * once however often it is begun.
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
      topics: deps.topics.arns,
      open: (entry) => this.#open(entry),
      giveUp: (run, error) => this.#giveUp(run, error),
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
      for (const job of jobs) {
        await store.addJob(tx, job);
        await this.#queues.enqueue(job, topicOf(memory, job.strategyId), tx);
      }
    });
    this.#queues.look();
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
    const { database, memories } = this.#deps;
    const memory = await memories.findById(memoryId);
    await database.transaction(async (tx) => {
      const job = await store.requeueJob(tx, memoryId, id);
      if (!job) throw errors.resourceNotFound(`There is no failed extraction job ${id} in this memory.`);
      await this.#queues.enqueue(job, topicOf(memory, job.strategyId), tx);
    });
    this.#queues.look();
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
      const { more, nextIdleAt = Number.POSITIVE_INFINITY } = await planJobs({ ...this.#deps, queues: this.#queues });
      const idleMs = Math.max(this.#deps.delayMs, nextIdleAt - this.#deps.clock.now());
      this.#wake(more ? this.#deps.delayMs : Math.min(SWEEP_MS, idleMs));
    } catch (error) {
      log.warn({ err: error }, 'events could not be given to extraction; it is tried again');
      this.#wake(RETRY_DELAY_SECONDS * 1000);
    }
  }

  async #open({ id }: store.Entry): Promise<OpenJob | undefined> {
    const job = await store.queuedJob(this.#deps.database, id);
    if (!job) return undefined;
    const memory = await this.#deps.memories.find(job.accountId, job.memoryId, true);
    return { topic: topicOf(memory, job.strategyId), run: (run) => this.#run(run, job, memory) };
  }

  async #run(run: JobRun<store.Entry>, job: store.ExtractionJob, memory: Memory | undefined): Promise<void> {
    try {
      await this.#extract(job, memory, run);
    } catch (error) {
      if (!(error instanceof UnfitBatchError)) throw error;
      await this.#giveUp(run, error);
    }
  }

  async #giveUp({ data, log }: JobRun<store.Entry>, error: unknown): Promise<void> {
    await store.giveUpJob(this.#deps.database, data.id, reasonOf(error));
    log.warn({ err: error, memoryId: data.memoryId, job: data.id }, 'a batch of events was given up');
  }

  async #extract(
    job: store.ExtractionJob,
    memory: Memory | undefined,
    { signal, span, end, log }: Pick<JobRun<store.Entry>, 'signal' | 'span' | 'end' | 'log'>,
  ): Promise<void> {
    const { database, clock, extractorFor, newRecordId, nearest } = this.#deps;
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
    const { changes, unread } = await extractBatch(
      batch,
      extractorFor(strategy),
      { executor: database, newRecordId, now, nearest },
      signal,
    );
    await database.transaction(async (tx) => {
      // Another server's by now, or deleted with its memory: nothing may happen.
      if (!(await end(tx)) || !(await store.endJob(tx, job.id))) return;
      await applyChanges(tx, changes, now());
      for (const one of unread) await this.#keepUnread(tx, job, one);
    });
    if (unread.length > 0)
      log.warn(
        { memoryId: job.memoryId, job: job.id, unread: unread.length },
        'a part of a batch could not be read; it is kept as a failed job',
      );
    if (changes.length > 0) this.#deps.onContent();
  }

  /** What could not be read becomes a failed job of its own, which can be started again. */
  async #keepUnread(tx: Executor, job: store.ExtractionJob, { messages, reason }: Unread): Promise<void> {
    const ids = new Set(messages.map(({ eventId }) => eventId));
    const id = this.#deps.newJobId();
    await store.addJob(tx, { ...job, id, events: job.events.filter(({ eventId }) => ids.has(eventId)) });
    await store.giveUpJob(tx, id, reason);
  }

  async #messages(job: store.ExtractionJob): Promise<Message[]> {
    if (job.inline) return messagesOf({ ...job.inline, eventId: job.id, at: new Date(job.inline.at) });
    const rows = await this.#deps.database.query<{
      event_id: string;
      at: Date;
      payload: string;
      metadata: unknown;
    }>(
      `SELECT event_id, at, payload, metadata FROM memory_events WHERE memory_id = $1 AND actor_id = $2 AND session_id = $3
         AND event_id IN (SELECT jsonb_array_elements_text($4::jsonb)) ORDER BY event_id`,
      [job.memoryId, job.actorId, job.sessionId, JSON.stringify(job.events.map(({ eventId }) => eventId))],
    );
    return rows.flatMap(({ event_id: eventId, at, payload, metadata }) =>
      messagesOf({
        eventId,
        at,
        payload: storedText(storedPayload, payload),
        metadata: storedMetadata(metadata, 'metadata'),
      }),
    );
  }
}

/** The reason for the user. Internal errors of the platform may contain private details, so they get a general text. */
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
