import { embedderOf } from '../../kernel/embeddings/index.ts';
import { createReranker, modelEndpoint } from '../../kernel/models/index.ts';
import { createTopics } from '../../kernel/notifications/index.ts';
import { objectWriter } from '../../kernel/objects/index.ts';
import type { ServiceModule } from '../../service-module.ts';
import { createMemoryService, type MemoryPort, memoryMigrations } from './index.ts';
import { MEMORY_OPERATIONS, type MemoryOperation } from './operations.ts';
import { memoryQuotas } from './quota-limits.ts';

declare module '../../service-module.ts' {
  interface Ports {
    memory: MemoryPort;
  }
}

/** Memory, with the models and topics that the configuration names. */
export const module: ServiceModule<'memory', MemoryOperation> = {
  operations: MEMORY_OPERATIONS,
  migrations: memoryMigrations,
  create(kernel) {
    const { config, ownOutbound: outbound, clock, identifiers, models, room } = kernel;
    const { rerank, notifications } = config;
    const model = config.memory.model === undefined ? models.default : models.find(config.memory.model);
    // Records can wait for their vectors; events and searches cannot.
    const openEmbedder = embedderOf(config, kernel, { threads: 1, textsAtOnce: 8, yields: true });
    return createMemoryService({
      ...kernel,
      quotas: memoryQuotas(config, room.report().total),
      objects: objectWriter(kernel.objects),
      topics: createTopics({
        webhooks: notifications.webhooks ?? new Map(),
        ...(notifications.key === undefined ? {} : { key: notifications.key }),
        outbound,
        clock,
        newId: identifiers.request,
      }),
      ...(openEmbedder ? { openEmbedder } : {}),
      ...(rerank.url === undefined
        ? {}
        : { reranker: createReranker(modelEndpoint(rerank.url, { name: rerank.model, key: rerank.key }, outbound)) }),
      ...(model ? { model } : {}),
      newIdSuffix: identifiers.suffix,
      newUuid: identifiers.request,
      extractionDelayMs: config.memory.extractionDelaySeconds * 1000,
    });
  },
};
