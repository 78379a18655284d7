import { randomInt } from 'node:crypto';
import type { Paginator } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import type { OpenEmbedder } from '../../kernel/embeddings/index.ts';
import type { RouteSet } from '../../kernel/http/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Model, Models, Reranker } from '../../kernel/models/index.ts';
import type { Topics } from '../../kernel/notifications/index.ts';
import type { ObjectWriter } from '../../kernel/objects/index.ts';
import type { Service } from '../../kernel/service.ts';
import type { Changes, Database } from '../../kernel/storage/index.ts';
import { createEventIds } from './event-id.ts';
import { Events } from './events.ts';
import { localExtractor } from './extraction/local-extractor.ts';
import { createModelExtractor } from './extraction/model-extractor.ts';
import { ExtractionJobs } from './extraction-jobs.ts';
import { Housekeeping } from './housekeeping.ts';
import { LateVectorIndex } from './late-vector-index.ts';
import { Memories } from './memories.ts';
import { MemoryQuota, type MemoryQuotaLimits } from './memory-quota.ts';
import { meterModel } from './model-usage.ts';
import { type MemoryOperation, memoryOperations } from './operations.ts';
import { Records } from './records.ts';
import { Retrieval } from './retrieval.ts';
import { usageRoutes } from './usage-routes.ts';

export type { MemoryQuotaLimits } from './memory-quota.ts';
export { memoryMigrations } from './tables.ts';

export interface MemoryServiceDeps {
  database: Database;
  changes: Changes;
  jobs: Jobs;
  paginator: Paginator;
  clock: Clock;
  log: Logger;
  region: string;
  newIdSuffix(): string;
  /** 36 characters, unique. */
  newUuid(): string;
  /** How long events may gather before they are extracted together, in milliseconds. */
  extractionDelayMs: number;
  quotas: MemoryQuotaLimits;
  /** Where batches of self-managed strategies go. */
  objects: ObjectWriter;
  topics: Topics;
  /** Absent: search is by words alone. */
  openEmbedder?: OpenEmbedder;
  /** Absent: what is found is ranked once. */
  reranker?: Reranker;
  /** Absent: long-term records are made by rules. */
  model?: Model;
  /** Models that a strategy may name. */
  models: Pick<Models, 'find'>;
}

/** What other services may use of it. */
export interface MemoryPort {
  memories: Memories;
  events: Events;
  records: Records;
  retrieval: Retrieval;
}

/** Memory: a log of events for each session, and long-term records made from it (spec: Memory). */
export function createMemoryService(
  deps: MemoryServiceDeps,
): Service<MemoryOperation, MemoryPort> & { routes: readonly RouteSet[] } {
  const { database, clock, log, jobs: queue } = deps;
  const memories = new Memories(deps);
  const vectors = new LateVectorIndex(deps);
  const retrieval = new Retrieval({
    database,
    clock,
    log,
    vectors,
    ...(deps.reranker ? { reranker: deps.reranker } : {}),
  });
  const newRecordId = (): string => `mem-${deps.newUuid()}`;
  const onContent = (): void => vectors.current?.wake();
  const { model, models } = deps;
  const extractor = model
    ? createModelExtractor({ model, models, meter: (use) => meterModel(database, clock, use) })
    : localExtractor;
  const records = new Records({ database, clock, newRecordId, onContent });
  const jobs = new ExtractionJobs({
    database,
    clock,
    log,
    jobs: queue,
    memories,
    extractorFor: () => extractor,
    nearest: (place, text, limit) => retrieval.nearest(place, text, limit),
    objects: deps.objects,
    topics: deps.topics,
    newRecordId,
    newJobId: deps.newUuid,
    newSessionId: deps.newUuid,
    delayMs: deps.extractionDelayMs,
    onContent,
  });
  const events = new Events({
    database,
    clock,
    newEventId: createEventIds(clock, () => randomInt(0x10000)),
    newSessionId: deps.newUuid,
    onPending: () => jobs.notify(),
  });
  const quota = new MemoryQuota(database, clock, deps.quotas);
  const housekeeping = new Housekeeping({ database, clock, log });
  return {
    operations: memoryOperations({ ...deps, memories, events, records, retrieval, jobs, quota }),
    routes: [usageRoutes({ database, memories, clock })],
    port: { memories, events, records, retrieval },
    async start() {
      await vectors.start();
      await jobs.start();
      housekeeping.start();
    },
    async stop() {
      await jobs.stop();
      await housekeeping.stop();
      await vectors.stop();
    },
  };
}
