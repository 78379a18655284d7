import {
  type DocumentValue,
  errors,
  type ListInput,
  type OperationName,
  type Paginator,
} from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import { nameOf } from '../../kernel/http/index.ts';
import type { ConditionKeys, HandlersOf, RequestContext } from '../../kernel/service.ts';
import type { Database } from '../../kernel/storage/index.ts';
import { conditionsOf } from './conditions.ts';
import type { SessionKey } from './event.ts';
import { eventView } from './event.ts';
import * as eventStore from './event-store.ts';
import type { Events } from './events.ts';
import type { ExtractionJobs } from './extraction-jobs.ts';
import type { Memories } from './memories.ts';
import { memoryView } from './memories.ts';
import type { Memory } from './memory.ts';
import type { MemoryQuota } from './memory-quota.ts';
import { namespaceScope } from './namespaces.ts';
import { recordView } from './record.ts';
import { EXPIRY_ACTION, namesExpiry, newExpiry, wantedExpiry } from './record-expiry.ts';
import type { Records } from './records.ts';
import type { Retrieval } from './retrieval.ts';
import {
  checkInvocations,
  type InvocationCheckDeps,
  wantedByChange,
  wantedByNew,
} from './self-managed/invocation-check.ts';

export interface MemoryOperationsDeps extends InvocationCheckDeps {
  memories: Memories;
  events: Events;
  records: Records;
  retrieval: Retrieval;
  jobs: ExtractionJobs;
  quota: Pick<MemoryQuota, 'need'>;
  database: Database;
  clock: Clock;
  paginator: Paginator;
  region: string;
}

/** What this service serves: the piece `memories` of the wire API. */
export const MEMORY_OPERATIONS = [
  'CreateMemory',
  'GetMemory',
  'ListMemories',
  'UpdateMemory',
  'DeleteMemory',
  'CreateEvent',
  'GetEvent',
  'ListEvents',
  'DeleteEvent',
  'ListActors',
  'ListSessions',
  'BatchCreateMemoryRecords',
  'BatchUpdateMemoryRecords',
  'BatchDeleteMemoryRecords',
  'GetMemoryRecord',
  'ListMemoryRecords',
  'DeleteMemoryRecord',
  'RetrieveMemoryRecords',
  'IngestData',
  'ListMemoryExtractionJobs',
  'StartMemoryExtractionJob',
] as const;
export type MemoryOperation = (typeof MEMORY_OPERATIONS)[number];

/** When a caller says nothing. */
const PAGE_SIZE = 20;

/** The `memories` operations of the wire API. */
export function memoryOperations(deps: MemoryOperationsDeps): HandlersOf<MemoryOperation> {
  const { memories, events, records, retrieval, jobs, quota, database, clock, paginator } = deps;
  const anyMemory = (_input: unknown, ctx: RequestContext): string => memories.arn(ctx.accountId, '*');
  const oneMemory = (input: { memoryId: string }, ctx: RequestContext): string =>
    input.memoryId.startsWith('arn:') ? input.memoryId : memories.arn(ctx.accountId, input.memoryId);
  /** The memory that an id or an ARN names; one of another account or region is not there. */
  const memoryOf = (input: { memoryId: string }, ctx: RequestContext, known = false): Promise<Memory> => {
    const id = idOf(input);
    if (input.memoryId.startsWith('arn:') && input.memoryId !== memories.arn(ctx.accountId, id)) {
      throw errors.resourceNotFound(`There is no memory ${input.memoryId} here.`);
    }
    return memories.get(ctx.accountId, id, known);
  };
  /** Without a memory there is nowhere to write; the handler says so. */
  const written = async (
    input: Parameters<typeof conditionsOf.written>[0] & { memoryId: string },
    ctx: RequestContext,
  ): Promise<ConditionKeys[]> => {
    const memory = await memories.find(ctx.accountId, idOf(input), true);
    return conditionsOf.written(input, memory?.data.strategies ?? []);
  };
  /** The same for whoever puts something into it. */
  const memoryWithRoom = async (input: { memoryId: string }, ctx: RequestContext, known = true): Promise<Memory> => {
    const memory = await memoryOf(input, ctx, known);
    await quota.need(memory);
    return memory;
  };
  const sessionOf = (memory: Memory, input: { actorId: string; sessionId: string }): SessionKey => ({
    memoryId: memory.id,
    actorId: input.actorId,
    sessionId: input.sessionId,
  });
  const page = (operation: OperationName, input: ListInput, { accountId }: RequestContext, filter: DocumentValue) =>
    paginator.wanted({ operation, accountId, filter }, input, PAGE_SIZE);
  const textOf = (cursor: DocumentValue | undefined): string | undefined =>
    cursor === undefined ? undefined : String(cursor);
  const filterOf = (value: unknown): DocumentValue => JSON.parse(JSON.stringify(value ?? null));

  return {
    CreateMemory: {
      resource: anyMemory,
      async handle(input, ctx) {
        await checkInvocations(wantedByNew(input.memoryStrategies, 'memoryStrategies'), ctx, deps);
        if (namesExpiry(input.memoryStrategies)) await ctx.require(EXPIRY_ACTION, memories.arn(ctx.accountId, '*'));
        return { memory: memoryView(await memories.create(input, ctx.accountId)) };
      },
    },
    GetMemory: {
      resource: oneMemory,
      handle: async (input, ctx) => ({ memory: memoryView(await memoryOf(input, ctx)) }),
    },
    ListMemories: {
      resource: anyMemory,
      async handle(input, ctx) {
        const { limit, after, token } = page('ListMemories', input, ctx, null);
        const { items, next } = await memories.list(ctx.accountId, limit, textOf(after));
        const summaries = items.map(({ arn, id, createdAt, updatedAt }) => {
          return { arn, id, status: 'ACTIVE' as const, createdAt, updatedAt };
        });
        return { memories: summaries, nextToken: token(next) };
      },
    },
    UpdateMemory: {
      resource: oneMemory,
      async handle(input, ctx) {
        const { id, arn } = await memoryOf(input, ctx);
        await checkInvocations(wantedByChange(input.memoryStrategies), ctx, deps);
        const { addMemoryStrategies, modifyMemoryStrategies } = input.memoryStrategies ?? {};
        if (namesExpiry([...(addMemoryStrategies ?? []), ...(modifyMemoryStrategies ?? [])]))
          await ctx.require(EXPIRY_ACTION, arn);
        return { memory: memoryView(await memories.update(input, ctx.accountId, id)) };
      },
    },
    DeleteMemory: {
      resource: oneMemory,
      async handle(input, ctx) {
        const { id } = await memoryOf(input, ctx);
        await memories.delete(ctx.accountId, id);
        return { memoryId: id, status: 'DELETING' };
      },
    },

    CreateEvent: {
      resource: oneMemory,
      conditions: written,
      // An event and its token are written in one statement; a table of answers beside it would double the commits.
      ownIdempotency: true,
      async handle(input, ctx) {
        const memory = await memoryWithRoom(input, ctx);
        return { event: eventView(await events.create(input, memory, nameOf(ctx.principal)), memory.id) };
      },
    },
    GetEvent: {
      resource: oneMemory,
      conditions: conditionsOf.session,
      async handle(input, ctx) {
        const memory = await memoryOf(input, ctx, true);
        return { event: eventView(await events.get(sessionOf(memory, input), input.eventId), memory.id) };
      },
    },
    ListEvents: {
      resource: oneMemory,
      conditions: conditionsOf.session,
      async handle(input, ctx) {
        const memory = await memoryOf(input, ctx, true);
        const { actorId, sessionId, filter, includePayloads = true } = input;
        const request = page('ListEvents', input, ctx, [memory.id, actorId, sessionId, filterOf(filter)]);
        const found = await events.list(sessionOf(memory, input), filter, request.limit, textOf(request.after));
        return {
          events: found.events.map((event) => eventView(event, memory.id, includePayloads)),
          nextToken: request.token(found.next),
        };
      },
    },
    DeleteEvent: {
      resource: oneMemory,
      conditions: conditionsOf.session,
      async handle(input, ctx) {
        const memory = await memoryOf(input, ctx, true);
        await events.delete(sessionOf(memory, input), input.eventId);
        return { eventId: input.eventId };
      },
    },
    ListActors: {
      resource: oneMemory,
      async handle(input, ctx) {
        const memory = await memoryOf(input, ctx, true);
        const { limit, after, token } = page('ListActors', input, ctx, memory.id);
        const found = await eventStore.listActors(database, memory.id, limit + 1, textOf(after));
        const actors = found.slice(0, limit);
        return {
          actorSummaries: actors.map((actorId) => ({ actorId })),
          nextToken: token(found.length > limit ? actors.at(-1) : undefined),
        };
      },
    },
    ListSessions: {
      resource: oneMemory,
      conditions: conditionsOf.session,
      async handle(input, ctx) {
        const memory = await memoryOf(input, ctx, true);
        const { actorId } = input;
        const { limit, after, token } = page('ListSessions', input, ctx, [memory.id, actorId, filterOf(input.filter)]);
        const [createdAt, sessionId] = Array.isArray(after) ? after : [];
        const found = await eventStore.listSessions(database, {
          memoryId: memory.id,
          actorId,
          now: new Date(clock.now()),
          limit: limit + 1,
          after:
            after === undefined ? undefined : { createdAt: new Date(Number(createdAt)), sessionId: String(sessionId) },
          withEventsOnly: input.filter?.eventFilter === 'HAS_EVENTS',
        });
        const sessions = found.slice(0, limit);
        const last = sessions.at(-1);
        return {
          sessionSummaries: sessions.map((session) => ({ ...session, actorId })),
          nextToken: token(found.length > limit && last ? [last.createdAt.getTime(), last.sessionId] : undefined),
        };
      },
    },

    BatchCreateMemoryRecords: {
      resource: oneMemory,
      conditions: conditionsOf.createdRecords,
      async handle(input, ctx) {
        const memory = await memoryWithRoom(input, ctx);
        const specification = input.recordExpirySpecification;
        if (specification) await ctx.require(EXPIRY_ACTION, memory.arn);
        return records.createBatch(input.records, memory, newExpiry(specification, 'recordExpirySpecification'));
      },
    },
    BatchUpdateMemoryRecords: {
      resource: oneMemory,
      conditions: conditionsOf.updatedRecords,
      async handle(input, ctx) {
        const memory = await memoryWithRoom(input, ctx);
        const specification = input.recordExpirySpecification;
        if (specification) await ctx.require(EXPIRY_ACTION, memory.arn);
        const expiry = specification && wantedExpiry(specification, 'recordExpirySpecification');
        return records.updateBatch(input.records, memory, expiry);
      },
    },
    BatchDeleteMemoryRecords: {
      resource: oneMemory,
      conditions: conditionsOf.deletedRecords,
      handle: async (input, ctx) => records.deleteBatch(input.records, await memoryOf(input, ctx, true)),
    },
    GetMemoryRecord: {
      resource: oneMemory,
      conditions: conditionsOf.namespace,
      async handle(input, ctx) {
        const memory = await memoryOf(input, ctx, true);
        return { memoryRecord: recordView(await records.get(memory.id, input.memoryRecordId, input.namespace)) };
      },
    },
    DeleteMemoryRecord: {
      resource: oneMemory,
      conditions: conditionsOf.namespace,
      async handle(input, ctx) {
        const memory = await memoryOf(input, ctx, true);
        await records.delete(memory.id, input.memoryRecordId, input.namespace);
        return { memoryRecordId: input.memoryRecordId };
      },
    },
    ListMemoryRecords: {
      resource: oneMemory,
      conditions: conditionsOf.namespace,
      async handle(input, ctx) {
        const memory = await memoryOf(input, ctx, true);
        const { memoryStrategyId, metadataFilters = [] } = input;
        const scope = namespaceScope(input);
        const asked = filterOf([memory.id, scope, memoryStrategyId, metadataFilters]);
        const { limit, after, token } = page('ListMemoryRecords', input, ctx, asked);
        const filter = {
          memoryId: memory.id,
          now: new Date(clock.now()),
          scope,
          strategyId: memoryStrategyId,
          metadata: metadataFilters,
          metadataField: 'metadataFilters',
        };
        const found = await records.list(filter, limit + 1, textOf(after));
        const shown = found.slice(0, limit);
        return {
          memoryRecordSummaries: shown.map(recordView),
          nextToken: token(found.length > limit ? shown.at(-1)?.id : undefined),
        };
      },
    },
    RetrieveMemoryRecords: {
      resource: oneMemory,
      conditions: conditionsOf.namespace,
      async handle(input, ctx) {
        const memory = await memoryOf(input, ctx, true);
        const { namespace, namespacePath, searchCriteria } = input;
        const asked = filterOf([memory.id, namespace, namespacePath, searchCriteria]);
        const request = page('RetrieveMemoryRecords', input, ctx, asked);
        const found = await retrieval.search(memory.id, input);
        const start = Number(request.after ?? 0);
        const end = start + (input.maxResults ?? found.length);
        return {
          memoryRecordSummaries: found.slice(start, end).map(({ record, score }) => ({ ...recordView(record), score })),
          nextToken: request.token(end < found.length ? end : undefined),
        };
      },
    },

    IngestData: {
      resource: oneMemory,
      conditions: written,
      handle: async (input, ctx) => ({ sessionId: await jobs.ingest(input, await memoryWithRoom(input, ctx, false)) }),
    },
    ListMemoryExtractionJobs: {
      resource: oneMemory,
      conditions: conditionsOf.jobs,
      async handle(input, ctx) {
        const memory = await memoryOf(input, ctx, true);
        const asked = filterOf([memory.id, input.filter]);
        const { limit, after, token } = page('ListMemoryExtractionJobs', input, ctx, asked);
        const { items, next } = await jobs.listFailed(memory.id, input.filter ?? {}, limit, textOf(after));
        return { jobs: items, nextToken: token(next) };
      },
    },
    StartMemoryExtractionJob: {
      resource: oneMemory,
      async handle(input, ctx) {
        const memory = await memoryOf(input, ctx, true);
        await jobs.restart(memory.id, input.extractionJob.jobId);
        return { jobId: input.extractionJob.jobId };
      },
    },
  };
}

function idOf({ memoryId }: { memoryId: string }): string {
  return memoryId.slice(memoryId.lastIndexOf('/') + 1);
}
