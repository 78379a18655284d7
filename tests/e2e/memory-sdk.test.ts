import { afterAll, beforeAll, expect, it } from 'vitest';
import { MemoryClient } from '../../packages/sdk/src/memory/index.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newMemory } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let clients: Clients;
let memory: MemoryClient;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--memory-extraction-delay-seconds', '0.1'] });
  clients = clientsOf(platform);
  const { endpoint, region } = platform.ready;
  memory = new MemoryClient({ endpoint, region, credentials: platform.credentials });
});
afterAll(async () => {
  memory?.close();
  clients?.close();
  await platform?.dispose();
});

it('MemoryClient keeps turns and finds what was made of them', async () => {
  const strategy = { name: 'facts', namespaceTemplates: ['/facts/{actorId}'] };
  const { id: memoryId } = await newMemory(clients, { memoryStrategies: [{ semanticMemoryStrategy: strategy }] });
  const session = { memoryId, actorId: 'jane', sessionId: 's1' };
  await memory.createEvent({ ...session, messages: [['Welcome back.', 'ASSISTANT']] });
  await memory.createEvent({
    ...session,
    messages: [
      ['I live in Oslo.', 'USER'],
      ['Noted.', 'ASSISTANT'],
    ],
  });
  const last = await memory.createEvent({ ...session, messages: [['I own a sailing boat.', 'USER']] });
  await memory.createEvent({ ...session, messages: [['Which one?', 'ASSISTANT']] });
  await memory.createEvent({
    ...session,
    messages: [['Never mind.', 'USER']],
    branch: { name: 'other', rootEventId: last.eventId },
  });
  const texts = (turns: { text: string }[][]) => turns.map((turn) => turn.map(({ text }) => text));
  expect(texts(await memory.getLastTurns({ ...session, k: 1 }))).toEqual([['I own a sailing boat.', 'Which one?']]);
  expect(texts(await memory.getLastTurns(session))).toEqual([
    ['Welcome back.'],
    ['I live in Oslo.', 'Noted.'],
    ['I own a sailing boat.', 'Which one?'],
  ]);
  expect(texts(await memory.getLastTurns({ ...session, branch: 'other', k: 2 }))).toEqual([
    ['I own a sailing boat.'],
    ['Never mind.'],
  ]);
  const find = () => memory.retrieveMemories({ memoryId, namespace: '/facts/jane', query: 'a boat', topK: 1 });
  await expect
    .poll(async () => (await find())[0], { timeout: 30_000 })
    .toMatchObject({
      text: 'I own a sailing boat.',
      namespace: '/facts/jane',
    });
  expect((await find())[0]?.score).toBeGreaterThan(0.5);
});
