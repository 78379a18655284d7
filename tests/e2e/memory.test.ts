import {
  BatchCreateMemoryRecordsCommand,
  BatchDeleteMemoryRecordsCommand,
  BatchUpdateMemoryRecordsCommand,
  CreateEventCommand,
  type CreateEventCommandInput,
  DeleteEventCommand,
  DeleteMemoryRecordCommand,
  GetEventCommand,
  GetMemoryRecordCommand,
  ListActorsCommand,
  ListEventsCommand,
  ListMemoryRecordsCommand,
  ListSessionsCommand,
  type MemoryRecordMetadataValue,
  type MemoryRecordOperatorType,
  RetrieveMemoryRecordsCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateMemoryCommand,
  DeleteMemoryCommand,
  GetMemoryCommand,
  ListMemoriesCommand,
  UpdateMemoryCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let clients: Clients;
let memoryId: string;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
  clients = clientsOf(platform);
  memoryId = await newMemory('log');
});
afterAll(async () => {
  clients?.close();
  if (process.env.SHOW_LOG) console.log(platform.log());
  await platform?.dispose();
});

async function newMemory(name: string, more: object = {}): Promise<string> {
  const { memory } = await clients.control.send(new CreateMemoryCommand({ name, eventExpiryDuration: 30, ...more }));
  return memory?.id ?? '';
}

function say(actorId: string, sessionId: string, text: string, more: Partial<CreateEventCommandInput> = {}) {
  return clients.data.send(
    new CreateEventCommand({
      memoryId,
      actorId,
      sessionId,
      eventTimestamp: new Date(),
      payload: [{ conversational: { role: 'USER', content: { text } } }],
      ...more,
    }),
  );
}

const textsOf = (events: { payload?: { conversational?: { content?: { text?: string } } }[] }[] = []) =>
  events.map((event) => event.payload?.[0]?.conversational?.content?.text);

describe('memories', () => {
  it('are made, read, listed, changed and deleted', async () => {
    const created = await clients.control.send(
      new CreateMemoryCommand({
        name: 'with_strategies',
        description: 'what users told',
        eventExpiryDuration: 7,
        memoryStrategies: [
          { semanticMemoryStrategy: { name: 'facts', namespaceTemplates: ['/facts/{actorId}'] } },
          { summaryMemoryStrategy: { name: 'summaries' } },
          { userPreferenceMemoryStrategy: { name: 'likes', namespaces: ['/likes/{actor_id}'] } },
          { episodicMemoryStrategy: { name: 'episodes' } },
          {
            customMemoryStrategy: {
              name: 'own',
              configuration: { semanticOverride: { extraction: { appendToPrompt: 'Only cities.', modelId: 'm' } } },
            },
          },
        ],
        tags: { team: 'red' },
      }),
    );
    const { memory } = created;
    expect(memory).toMatchObject({ name: 'with_strategies', status: 'ACTIVE', eventExpiryDuration: 7 });
    expect(memory?.id).toMatch(/^with_strategies-[a-zA-Z0-9]{10}$/);
    expect(memory?.strategies?.map(({ name, type, status }) => [name, type, status])).toEqual([
      ['facts', 'SEMANTIC', 'ACTIVE'],
      ['summaries', 'SUMMARIZATION', 'ACTIVE'],
      ['likes', 'USER_PREFERENCE', 'ACTIVE'],
      ['episodes', 'EPISODIC', 'ACTIVE'],
      ['own', 'CUSTOM', 'ACTIVE'],
    ]);
    expect(memory?.strategies?.[0]?.namespaces).toEqual(['/facts/{actorId}']);
    expect(memory?.strategies?.[1]?.namespaceTemplates).toEqual([
      '/strategies/{memoryStrategyId}/actors/{actorId}/sessions/{sessionId}',
    ]);
    const id = memory?.id ?? '';
    expect((await clients.control.send(new GetMemoryCommand({ memoryId: id }))).memory).toEqual(memory);
    expect((await clients.data.send(new ListActorsCommand({ memoryId: memory?.arn }))).actorSummaries).toEqual([]);
    const foreign = memory?.arn?.replace(/:\d{12}:/, ':000000000000:');
    await expect(clients.data.send(new ListActorsCommand({ memoryId: foreign }))).rejects.toThrow('There is no memory');
    const { memories } = await clients.control.send(new ListMemoriesCommand({ maxResults: 100 }));
    expect(memories?.map((each) => each.id)).toContain(id);
    const updated = await clients.control.send(
      new UpdateMemoryCommand({
        memoryId: id,
        description: 'changed',
        memoryStrategies: {
          deleteMemoryStrategies: [{ memoryStrategyId: memory?.strategies?.[3]?.strategyId }],
          modifyMemoryStrategies: [{ memoryStrategyId: memory?.strategies?.[0]?.strategyId, description: 'of users' }],
          addMemoryStrategies: [{ semanticMemoryStrategy: { name: 'more' } }],
        },
      }),
    );
    expect(updated.memory).toMatchObject({ description: 'changed' });
    expect(updated.memory?.strategies?.map(({ name }) => name)).toEqual(['facts', 'summaries', 'likes', 'own', 'more']);
    expect(updated.memory?.strategies?.[0]?.description).toBe('of users');
    expect(await clients.control.send(new DeleteMemoryCommand({ memoryId: id }))).toMatchObject({ status: 'DELETING' });
    await expect(clients.control.send(new GetMemoryCommand({ memoryId: id }))).rejects.toThrow('There is no memory');
  });

  it('are refused with the field that is wrong', async () => {
    await expect(newMemory('log')).rejects.toMatchObject({ name: 'ValidationException', message: /already exists/ });
    const semantic = (name: string, template?: string) => ({
      semanticMemoryStrategy: { name, ...(template ? { namespaceTemplates: [template] } : {}) },
    });
    await expect(newMemory('twice', { memoryStrategies: [semantic('a'), semantic('a')] })).rejects.toMatchObject({
      name: 'ValidationException',
      fieldList: [{ name: 'memoryStrategies[1].name' }],
    });
    await expect(newMemory('unknown', { memoryStrategies: [semantic('a', '/t/{teamId}')] })).rejects.toMatchObject({
      name: 'ValidationException',
      fieldList: [{ name: 'memoryStrategies[0].namespaceTemplates[0]' }],
    });
    const stream = { kinesis: { dataStreamArn: 'arn:aws:kinesis:us-east-1:123456789012:stream/s' } };
    const contentConfigurations = [{ type: 'MEMORY_RECORDS' as const }];
    const resources = [{ kinesis: { ...stream.kinesis, contentConfigurations } }];
    await expect(newMemory('stream', { streamDeliveryResources: { resources } })).rejects.toMatchObject({
      name: 'ValidationException',
      fieldList: [{ name: 'streamDeliveryResources' }],
    });
    await expect(newMemory('short', { eventExpiryDuration: 1 })).rejects.toMatchObject({ name: 'ValidationException' });
  });
});

describe('events', () => {
  it('come back newest first, whole, page by page, whatever is written meanwhile', async () => {
    const start = Date.now() - 100_000;
    const ids: string[] = [];
    for (let i = 0; i < 25; i++) {
      const { event } = await say('jane', 'pages', `message ${i}`, { eventTimestamp: new Date(start + i * 1000) });
      ids.unshift(event?.eventId ?? '');
    }
    const seen: string[] = [];
    let nextToken: string | undefined;
    do {
      const page = await clients.data.send(
        new ListEventsCommand({ memoryId, actorId: 'jane', sessionId: 'pages', maxResults: 10, nextToken }),
      );
      seen.push(...(page.events ?? []).map(({ eventId }) => eventId ?? ''));
      nextToken = page.nextToken;
      await say('jane', 'pages', 'meanwhile');
    } while (nextToken);
    expect(seen).toEqual(ids);
  });

  it('keep every kind of payload exactly, U+0000 and odd characters too', async () => {
    const payload = [
      { conversational: { role: 'TOOL' as const, content: { text: 'nul \u0000 and 😀 and more' } } },
      { blob: '{"kept":"as text"}' },
      { json: { content: { deep: [1, 2.5, null, { a: 'b\u0000' }] } } },
    ];
    const { event } = await say('jane', 'payloads', '', { payload, metadata: { mood: { stringValue: 'good' } } });
    const got = await clients.data.send(
      new GetEventCommand({ memoryId, actorId: 'jane', sessionId: 'payloads', eventId: event?.eventId }),
    );
    expect(got.event).toMatchObject({ metadata: { mood: { stringValue: 'good' } } });
    expect(got.event?.payload?.[0]?.conversational?.content?.text).toContain('nul \u0000 and 😀');
    expect(got.event?.payload?.[1]).toMatchObject({ blob: '{"kept":"as text"}' });
    expect(got.event?.payload?.[2]).toMatchObject({ json: { content: { deep: [1, 2.5, null, { a: 'b\u0000' }] } } });
    const bare = await clients.data.send(
      new ListEventsCommand({ memoryId, actorId: 'jane', sessionId: 'payloads', includePayloads: false }),
    );
    expect(bare.events?.[0]).not.toHaveProperty('payload');
  });

  it('are made once per client token', async () => {
    const token = 'token-0123456789-0123456789-0123456789';
    const eventTimestamp = new Date();
    const first = await say('jane', 'tokens', 'once', { clientToken: token, eventTimestamp });
    const again = await Promise.all(
      Array.from({ length: 5 }, () => say('jane', 'tokens', 'once', { clientToken: token, eventTimestamp })),
    );
    expect(new Set(again.map(({ event }) => event?.eventId))).toEqual(new Set([first.event?.eventId]));
    await expect(say('jane', 'tokens', 'other', { clientToken: token, eventTimestamp })).rejects.toMatchObject({
      name: 'ValidationException',
      reason: 'IdempotentParameterMismatchException',
    });
    const { events } = await clients.data.send(
      new ListEventsCommand({ memoryId, actorId: 'jane', sessionId: 'tokens' }),
    );
    expect(textsOf(events)).toEqual(['once']);
  });

  it('branch, list with parents and go on', async () => {
    const at = (n: number) => ({ eventTimestamp: new Date(Date.now() - 60_000 + n * 1000) });
    const one = await say('jane', 'branches', 'one', at(1));
    const two = await say('jane', 'branches', 'two', at(2));
    await say('jane', 'branches', 'three', at(3));
    const branch = { name: 'other', rootEventId: two.event?.eventId };
    const begun = await say('jane', 'branches', 'other three', { ...at(4), branch });
    expect(begun.event?.branch).toEqual(branch);
    await say('jane', 'branches', 'other four', { ...at(5), branch: { name: 'other' } });
    const inner = { name: 'inner', rootEventId: begun.event?.eventId };
    await say('jane', 'branches', 'inner four', { ...at(6), branch: inner });
    const list = async (name: string, includeParentBranches = false) => {
      const filter = { branch: { name, includeParentBranches } };
      const input = { memoryId, actorId: 'jane', sessionId: 'branches', filter };
      return textsOf((await clients.data.send(new ListEventsCommand(input))).events);
    };
    expect(await list('other')).toEqual(['other four', 'other three']);
    expect(await list('other', true)).toEqual(['other four', 'other three', 'two', 'one']);
    expect(await list('inner', true)).toEqual(['inner four', 'other three', 'two', 'one']);
    expect(await list('main')).toEqual(['three', 'two', 'one']);
    await expect(
      say('jane', 'elsewhere', 'x', { branch: { name: 'b', rootEventId: one.event?.eventId } }),
    ).rejects.toMatchObject({
      name: 'ValidationException',
      reason: 'EventInOtherSession',
    });
    await expect(
      say('jane', 'branches', 'x', { branch: { name: 'other', rootEventId: one.event?.eventId } }),
    ).rejects.toMatchObject({
      reason: 'ResourceConflict',
    });
    await expect(say('jane', 'branches', 'x', { branch: { name: 'nowhere' } })).rejects.toMatchObject({
      fieldList: [{ name: 'branch.rootEventId' }],
    });
  });

  it('are filtered by metadata', async () => {
    await say('jane', 'filters', 'plain');
    await say('jane', 'filters', 'paris', { metadata: { city: { stringValue: 'Paris' } } });
    await say('jane', 'filters', 'rome', { metadata: { city: { stringValue: 'Rome' }, year: { stringValue: '1' } } });
    const list = async (operator: 'EQUALS_TO' | 'EXISTS' | 'NOT_EXISTS', metadataKey: string, stringValue?: string) => {
      const right = stringValue === undefined ? undefined : { metadataValue: { stringValue } };
      const filter = { eventMetadata: [{ left: { metadataKey }, operator, ...(right ? { right } : {}) }] };
      const input = { memoryId, actorId: 'jane', sessionId: 'filters', filter };
      return textsOf((await clients.data.send(new ListEventsCommand(input))).events);
    };
    expect(await list('EQUALS_TO', 'city', 'Paris')).toEqual(['paris']);
    expect(await list('EXISTS', 'city')).toEqual(['rome', 'paris']);
    expect(await list('NOT_EXISTS', 'year')).toEqual(['paris', 'plain']);
    await expect(list('EQUALS_TO', 'city')).rejects.toMatchObject({ name: 'ValidationException' });
  });

  it('know their actors and sessions, and nothing of others', async () => {
    const own = await newMemory('others');
    for (const actorId of ['a', 'b', 'c'])
      for (const sessionId of ['s1', 's2']) await say(actorId, sessionId, 'x', { memoryId: own });
    const actors: string[] = [];
    for (let nextToken: string | undefined, first = true; first || nextToken; first = false) {
      const page = await clients.data.send(new ListActorsCommand({ memoryId: own, maxResults: 2, nextToken }));
      actors.push(...(page.actorSummaries ?? []).map(({ actorId }) => actorId ?? ''));
      nextToken = page.nextToken;
    }
    expect(actors).toEqual(['a', 'b', 'c']);
    const { sessionSummaries } = await clients.data.send(new ListSessionsCommand({ memoryId: own, actorId: 'b' }));
    expect(sessionSummaries?.map(({ sessionId }) => sessionId)).toEqual(['s2', 's1']);
    const { events } = await clients.data.send(new ListEventsCommand({ memoryId: own, actorId: 'b', sessionId: 's1' }));
    const gone = { memoryId: own, actorId: 'b', sessionId: 's1', eventId: events?.[0]?.eventId };
    await expect(clients.data.send(new GetEventCommand({ ...gone, actorId: 'a' }))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
    await expect(clients.data.send(new GetEventCommand({ ...gone, memoryId }))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
    await clients.data.send(new DeleteEventCommand(gone));
    await expect(clients.data.send(new GetEventCommand(gone))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
    await expect(clients.data.send(new DeleteEventCommand(gone))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
    const left = await clients.data.send(
      new ListSessionsCommand({ memoryId: own, actorId: 'b', filter: { eventFilter: 'HAS_EVENTS' } }),
    );
    expect(left.sessionSummaries?.map(({ sessionId }) => sessionId)).toEqual(['s2']);
    const nobody = await clients.data.send(
      new ListEventsCommand({ memoryId: own, actorId: 'nobody', sessionId: 'none' }),
    );
    expect(nobody.events).toEqual([]);
  });

  it('are refused with the wire’s errors', async () => {
    await expect(say('jane', 's', 'x', { memoryId: 'nothing-0123456789' })).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
    await expect(say('jane', 's', 'x'.repeat(100_001))).rejects.toMatchObject({ name: 'ValidationException' });
    const metadata = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`k${i}`, { stringValue: 'v' }]));
    await expect(say('jane', 's', 'x', { metadata })).rejects.toMatchObject({ name: 'ValidationException' });
    const payload = [{ conversational: { role: 'SYSTEM' as 'USER', content: { text: 'x' } } }];
    await expect(say('jane', 's', 'x', { payload })).rejects.toMatchObject({
      name: 'ValidationException',
      message: /role/,
    });
    const extractionConfig = { namespaceVariables: { team: 'red' } };
    await expect(say('jane', 's', 'x', { extractionConfig })).rejects.toMatchObject({
      message: /namespaceVariables.team is not declared/,
    });
    await expect(say('jane', 's', 'x', { eventTimestamp: new Date(-5000) })).rejects.toMatchObject({
      message: /eventTimestamp/,
    });
    await expect(say('jane', 's', 'x', { eventTimestamp: new Date(8e15) })).rejects.toMatchObject({
      message: /eventTimestamp/,
    });
    const input = { memoryId, actorId: 'jane', sessionId: 'pages' };
    const { nextToken } = await clients.data.send(new ListEventsCommand({ ...input, maxResults: 1 }));
    await expect(
      clients.data.send(new ListEventsCommand({ ...input, sessionId: 'tokens', nextToken })),
    ).rejects.toMatchObject({ message: /nextToken/ });
  });
});

describe('records', () => {
  const record = (
    id: string,
    namespace: string,
    text: string,
    metadata?: Record<string, MemoryRecordMetadataValue>,
  ) => ({
    requestIdentifier: id,
    namespaces: [namespace],
    content: { text },
    timestamp: new Date(),
    ...(metadata ? { metadata } : {}),
  });

  it('are written, found, changed and deleted; a namespace never leaks into one that begins alike', async () => {
    const created = await clients.data.send(
      new BatchCreateMemoryRecordsCommand({
        memoryId,
        records: [
          record('one', '/actors/jane', 'Jane plays the violin in an orchestra', { level: { numberValue: 3 } }),
          record('two', '/actors/jane/sessions/s1', 'Jane sold her old violin', {
            when: { dateTimeValue: new Date(1e12) },
          }),
          record('three', '/actors/janet', 'Janet repairs violins', { tags: { stringListValue: ['craft', 'music'] } }),
          record('four', '/actors/jane', 'nul \u0000'),
          record('one', '/actors/jane', 'the same identifier'),
        ],
      }),
    );
    expect(created.successfulRecords?.map(({ requestIdentifier }) => requestIdentifier)).toEqual([
      'one',
      'two',
      'three',
    ]);
    expect(created.failedRecords).toMatchObject([
      { requestIdentifier: 'four', status: 'FAILED', errorCode: 400, errorMessage: /U\+0000/ },
      { requestIdentifier: 'one', status: 'FAILED', errorCode: 400 },
    ]);
    const search = async (where: object, more: object = {}) => {
      const input = { memoryId, ...where, searchCriteria: { searchQuery: 'Who has a violin?', ...more } };
      const found = await clients.data.send(new RetrieveMemoryRecordsCommand(input));
      return found.memoryRecordSummaries?.map(({ content }) => content?.text?.split(' ').slice(0, 2).join(' ')).sort();
    };
    expect(await search({ namespace: '/actors/jane' })).toEqual(['Jane plays']);
    expect(await search({ namespace: '/actors/jane/' })).toEqual(['Jane plays']);
    expect(await search({ namespacePath: '/actors/jane' })).toEqual(['Jane plays', 'Jane sold']);
    expect(await search({ namespacePath: '/actors' })).toEqual(['Jane plays', 'Jane sold', 'Janet repairs']);
    expect(await search({ namespacePath: '/' })).toHaveLength(3);
    expect(await search({ namespace: '/actors/jan' })).toEqual([]);
    expect(await search({ namespacePath: '/actors' }, { topK: 1 })).toHaveLength(1);
    const by = (operator: MemoryRecordOperatorType, metadataKey: string, metadataValue?: MemoryRecordMetadataValue) =>
      search(
        { namespacePath: '/' },
        {
          metadataFilters: [
            { left: { metadataKey }, operator, ...(metadataValue ? { right: { metadataValue } } : {}) },
          ],
        },
      );
    expect(await by('GREATER_THAN', 'level', { numberValue: 2 })).toEqual(['Jane plays']);
    expect(await by('LESS_THAN', 'level', { numberValue: 2 })).toEqual([]);
    expect(await by('BEFORE', 'when', { dateTimeValue: new Date(1e12 + 1) })).toEqual(['Jane sold']);
    expect(await by('CONTAINS', 'tags', { stringValue: 'music' })).toEqual(['Janet repairs']);
    expect(await by('NOT_EXISTS', 'tags')).toEqual(['Jane plays', 'Jane sold']);
    expect(await by('EQUALS_TO', 'level', { numberValue: 3 })).toEqual(['Jane plays']);
    await expect(by('GREATER_THAN', 'level', { stringValue: 'x' })).rejects.toMatchObject({
      message: /metadataFilters\[0\].right must be a numberValue/,
    });

    const [one, two, three] = created.successfulRecords?.map(({ memoryRecordId }) => memoryRecordId ?? '') ?? [];
    const updated = await clients.data.send(
      new BatchUpdateMemoryRecordsCommand({
        memoryId,
        records: [
          {
            memoryRecordId: one,
            timestamp: new Date(),
            content: { text: 'Jane plays the viola' },
            sourceNamespaces: ['/actors/jane'],
          },
          {
            memoryRecordId: two,
            timestamp: new Date(),
            content: { text: 'never' },
            sourceNamespaces: ['/actors/janet'],
          },
        ],
      }),
    );
    expect(updated.failedRecords).toMatchObject([{ memoryRecordId: two, errorCode: 404 }]);
    const got = await clients.data.send(new GetMemoryRecordCommand({ memoryId, memoryRecordId: one }));
    expect(got.memoryRecord).toMatchObject({ content: { text: 'Jane plays the viola' }, namespaces: ['/actors/jane'] });
    await expect(
      clients.data.send(new GetMemoryRecordCommand({ memoryId, memoryRecordId: one, namespace: '/actors/janet' })),
    ).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    const listed: string[] = [];
    for (let nextToken: string | undefined, first = true; first || nextToken; first = false) {
      const page = await clients.data.send(
        new ListMemoryRecordsCommand({ memoryId, namespacePath: '/actors', maxResults: 2, nextToken }),
      );
      listed.push(...(page.memoryRecordSummaries ?? []).map((each) => each.memoryRecordId ?? ''));
      nextToken = page.nextToken;
    }
    expect(listed.sort()).toEqual([one, two, three].sort());
    await clients.data.send(new DeleteMemoryRecordCommand({ memoryId, memoryRecordId: one }));
    const deleted = await clients.data.send(
      new BatchDeleteMemoryRecordsCommand({
        memoryId,
        records: [
          { memoryRecordId: one ?? '' },
          { memoryRecordId: two ?? '' },
          { memoryRecordId: three ?? '', namespace: '/actors/jane' },
        ],
      }),
    );
    expect(deleted.successfulRecords).toMatchObject([{ memoryRecordId: two }]);
    expect(deleted.failedRecords).toHaveLength(2);
  });
});
