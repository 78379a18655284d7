import {
  IngestDataCommand,
  ListMemoryExtractionJobsCommand,
  paginateListMemoryRecords,
  RetrieveMemoryRecordsCommand,
  StartMemoryExtractionJobCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { UpdateMemoryCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newMemory, sayIn, texts, untilRecords } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let clients: Clients;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--memory-extraction-delay-seconds', '0.2'] });
  clients = clientsOf(platform);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

const facts = { semanticMemoryStrategy: { name: 'facts', namespaceTemplates: ['/facts/{actorId}'] } };

describe('extraction without a model', () => {
  it('makes facts, preferences, summaries and episodes of what was said, and of nothing else', async () => {
    const { id: memoryId } = await newMemory(clients, {
      memoryStrategies: [
        facts,
        { userPreferenceMemoryStrategy: { name: 'likes', namespaceTemplates: ['/likes/{actor_id}'] } },
        { summaryMemoryStrategy: { name: 'sums', namespaceTemplates: ['/sums/{actorId}/{sessionId}'] } },
        { episodicMemoryStrategy: { name: 'episodes', namespaceTemplates: ['/episodes/{actorId}/{sessionId}'] } },
      ],
    });
    const session = { memoryId, actorId: 'jane', sessionId: 's1' };
    const at = { eventTimestamp: new Date('2024-05-03T10:00:00Z') };
    await sayIn(
      clients,
      session,
      [
        ['Hello! I moved to Berlin yesterday. I prefer window seats on trains. Can you book one?', 'USER'],
        ['Your secret tool token is 12345 from Paris', 'TOOL'],
        ['<recalled_memory>I own three horses in Texas</recalled_memory> Thanks.', 'USER'],
        ['You are an assistant of Initech in Delaware', 'OTHER'],
        ['I have booked seat 45 by the window.', 'ASSISTANT'],
      ],
      at,
    );
    const marked = { ...at, metadata: { 'agentplatform.source': { stringValue: 'memory' } } };
    await sayIn(clients, session, [['I own a boat in Kiel', 'USER']], marked);
    await sayIn(clients, session, [['I own a kite in Kiel', 'USER']], { ...at, extractionMode: 'SKIP' });

    const found = await untilRecords(clients, memoryId, '/facts', (records) => records.length >= 2);
    expect(texts(found)).toEqual(['I moved to Berlin yesterday [2024-05-02].', 'I prefer window seats on trains.']);
    expect(found[0]?.namespaces).toEqual(['/facts/jane']);
    expect(texts(await untilRecords(clients, memoryId, '/likes', (records) => records.length > 0))).toEqual([
      'I prefer window seats on trains.',
    ]);
    const [summary] = texts(await untilRecords(clients, memoryId, '/sums', (records) => records.length > 0));
    expect(summary).toContain('User: I moved to Berlin yesterday [2024-05-02].');
    expect(summary).toContain('Assistant: I have booked seat 45');
    expect(summary).not.toMatch(/horses|secret|Initech|boat|kite/);
    const [episode] = texts(await untilRecords(clients, memoryId, '/episodes', (records) => records.length > 0));
    expect(episode).toMatch(/^Intent: [\s\S]*Outcome: Assistant: I have booked seat 45/);
  });

  it('says a thing once, replaces what is no longer so, and keeps the summary one', async () => {
    const { id: memoryId } = await newMemory(clients, {
      memoryStrategies: [
        facts,
        { summaryMemoryStrategy: { name: 'sums', namespaceTemplates: ['/sums/{actorId}/{sessionId}'] } },
      ],
    });
    const session = { memoryId, actorId: 'jane', sessionId: 's1' };
    await sayIn(clients, session, [['I live in Berlin with two cats.', 'USER']], { eventTimestamp: new Date(1e12) });
    await untilRecords(clients, memoryId, '/facts', (records) => records.length === 1);
    await sayIn(clients, { ...session, sessionId: 's2' }, [['I live in Berlin with two cats!', 'USER']], {
      eventTimestamp: new Date(2e12),
    });
    await untilRecords(clients, memoryId, '/sums/jane/s2', (records) => records.length === 1);
    expect(await untilRecords(clients, memoryId, '/facts', (records) => records.length === 1)).toHaveLength(1);
    await sayIn(clients, session, [['I now live in Madrid near the park.', 'USER']], {
      eventTimestamp: new Date(3e12),
    });
    const replaced = await untilRecords(clients, memoryId, '/facts', (all) => texts(all).join().includes('Madrid'));
    expect(texts(replaced)).toEqual(['I now live in Madrid near the park.']);
    const found = await clients.data.send(
      new RetrieveMemoryRecordsCommand({
        memoryId,
        namespace: '/facts/jane',
        searchCriteria: { searchQuery: 'Berlin' },
      }),
    );
    expect(found.memoryRecordSummaries).toEqual([]);
    const sums = await untilRecords(clients, memoryId, '/sums/jane/s1', (all) => texts(all).join().includes('Madrid'));
    expect(sums).toHaveLength(1);
    expect(texts(sums)[0]).toContain('Berlin');
  });

  it('keeps every fact of fifty events', async () => {
    const { id: memoryId } = await newMemory(clients, { memoryStrategies: [facts] });
    const session = { memoryId, actorId: 'jane', sessionId: 's1' };
    const said = (event: number) =>
      Array.from({ length: 5 }, (_, n) => `My locker ${event * 5 + n} holds ${n + 2} pairs of boots.`).join(' ');
    await Promise.all(Array.from({ length: 50 }, (_, event) => sayIn(clients, session, [[said(event), 'USER']])));
    const count = async () => {
      let found = 0;
      for await (const page of paginateListMemoryRecords(
        { client: clients.data, pageSize: 100 },
        { memoryId, namespacePath: '/facts' },
      ))
        found += page.memoryRecordSummaries?.length ?? 0;
      return found;
    };
    await expect.poll(count, { timeout: 90_000, interval: 500 }).toBe(250);
  }, 120_000);

  it('puts records where the caller’s own variables say, and refuses those that were not declared', async () => {
    const { id: memoryId } = await newMemory(clients, {
      namespaceKeys: [{ key: 'team', validation: { allowedValues: ['red', 'blue'] } }],
      memoryStrategies: [{ semanticMemoryStrategy: { name: 'facts', namespaceTemplates: ['/team/{team}/'] } }],
    });
    const session = { memoryId, actorId: 'jane', sessionId: 's1' };
    const variables = (team: string) => ({ extractionConfig: { namespaceVariables: { team } } });
    await sayIn(clients, session, [['Our standup is at 9 in Room Oak.', 'USER']], variables('red'));
    await sayIn(clients, session, [['Our standup is at 11 in Room Elm.', 'USER']], variables('blue'));
    expect(texts(await untilRecords(clients, memoryId, '/team/red', (all) => all.length === 1))[0]).toContain('Oak');
    expect(texts(await untilRecords(clients, memoryId, '/team/blue', (all) => all.length === 1))[0]).toContain('Elm');
    await expect(sayIn(clients, session, [['x', 'USER']], variables('green'))).rejects.toMatchObject({
      name: 'ValidationException',
    });
  });

  it('lists a job that failed and starts it again', async () => {
    const memory = await newMemory(clients, {
      namespaceKeys: [{ key: 'team' }],
      memoryStrategies: [{ semanticMemoryStrategy: { name: 'facts', namespaceTemplates: ['/team/{team}/'] } }],
    });
    const memoryId = memory.id;
    const strategyId = memory.strategies?.[0]?.strategyId;
    const session = { memoryId, actorId: 'jane', sessionId: 's1' };
    const eventId = await sayIn(clients, session, [['I work at Initech in Austin.', 'USER']]);
    const failed = async () =>
      (await clients.data.send(new ListMemoryExtractionJobsCommand({ memoryId, filter: { sessionId: 's1' } }))).jobs ??
      [];
    await expect.poll(failed, { timeout: 40_000, interval: 300 }).toHaveLength(1);
    const [job] = await failed();
    expect(job).toMatchObject({
      status: 'FAILED',
      strategyId,
      actorId: 'jane',
      failureReason: /needs team/,
      messages: { messagesList: [{ eventId, messageIndex: 0 }] },
    });
    await clients.control.send(
      new UpdateMemoryCommand({
        memoryId,
        memoryStrategies: { modifyMemoryStrategies: [{ memoryStrategyId: strategyId, namespaceTemplates: ['/all'] }] },
      }),
    );
    await clients.data.send(new StartMemoryExtractionJobCommand({ memoryId, extractionJob: { jobId: job?.jobID } }));
    expect(texts(await untilRecords(clients, memoryId, '/all', (all) => all.length === 1))).toEqual([
      'I work at Initech in Austin.',
    ]);
    expect(await failed()).toEqual([]);
    await expect(
      clients.data.send(new StartMemoryExtractionJobCommand({ memoryId, extractionJob: { jobId: job?.jobID } })),
    ).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  }, 60_000);

  it('takes in data that is no event', async () => {
    const { id: memoryId } = await newMemory(clients, { memoryStrategies: [facts] });
    const { sessionId } = await clients.data.send(
      new IngestDataCommand({
        memoryId,
        actorId: 'jane',
        contentTimestamp: new Date('2024-05-03T10:00:00Z'),
        source: {
          inline: { payload: [{ conversational: { role: 'USER', content: { text: 'I sold my car last week.' } } }] },
        },
      }),
    );
    expect(sessionId).toBeTruthy();
    expect(texts(await untilRecords(clients, memoryId, '/facts', (all) => all.length === 1))).toEqual([
      'I sold my car last week [week of 2024-04-22].',
    ]);
  });
});
