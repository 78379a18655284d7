import type { Paginator } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Config } from './config.ts';
import { identifiers } from './identifiers.ts';
import type { Clock } from './kernel/clock.ts';
import type { Jobs } from './kernel/jobs/index.ts';
import { createChatModel, createReranker, modelEndpoint } from './kernel/models/index.ts';
import { createTopics } from './kernel/notifications/index.ts';
import { type ObjectStore, objectWriter } from './kernel/objects/index.ts';
import type { Outbound } from './kernel/outbound/index.ts';
import type { Database } from './kernel/storage/index.ts';
import { embedderOf } from './open-embedder.ts';
import { createMemoryService, type MemoryQuotaLimits } from './services/memory/index.ts';

/** What memory stands on. */
export interface MemoryParts {
  database: Database;
  objects: ObjectStore;
  /** The operator's way out. */
  outbound: Outbound;
  jobs: Jobs;
  paginator: Paginator;
  quotas: MemoryQuotaLimits;
  clock: Clock;
  log: Logger;
}

/** The memory service with the models and topics that the configuration names. */
export function openMemory(
  config: Config,
  { objects, outbound, ...parts }: MemoryParts,
): ReturnType<typeof createMemoryService> {
  const { models, rerank, notifications } = config;
  const openEmbedder = embedderOf(config, outbound);
  const topics = createTopics({
    webhooks: notifications.webhooks ?? new Map(),
    ...(notifications.key === undefined ? {} : { key: notifications.key }),
    outbound,
    clock: parts.clock,
    newId: identifiers.request,
  });
  return createMemoryService({
    ...parts,
    objects: objectWriter(objects),
    topics,
    ...(openEmbedder ? { openEmbedder } : {}),
    ...(rerank.url === undefined
      ? {}
      : { reranker: createReranker(modelEndpoint(rerank.url, { name: rerank.model, key: rerank.key }, outbound)) }),
    ...(models.url === undefined ? {} : { chat: createChatModel(modelEndpoint(models.url, models, outbound)) }),
    region: config.region,
    newIdSuffix: identifiers.suffix,
    newUuid: identifiers.request,
    extractionDelayMs: config.memory.extractionDelaySeconds * 1000,
  });
}
