import {
  Annotation,
  Command,
  END,
  interrupt,
  type LangGraphRunnableConfig,
  START,
  StateGraph,
} from '@langchain/langgraph';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MemorySaver, MemoryStore } from '../../packages/sdk/src/langgraph/index.ts';
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

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe('LangGraph', () => {
  let memoryId: string;
  beforeAll(async () => {
    const strategy = { name: 'facts', namespaceTemplates: ['/facts/{actorId}'] };
    memoryId = (await newMemory(clients, { memoryStrategies: [{ semanticMemoryStrategy: strategy }] })).id;
  });
  const State = Annotation.Root({ said: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }) });
  const thread = (name: string, more = {}) => ({ configurable: { thread_id: name, actor_id: 'gil', ...more } });
  const saver = () => new MemorySaver({ memoryId, actorId: 'gil', client: memory });
  /** A graph made anew each time, as in another process. */
  const graph = () =>
    new StateGraph(State)
      .addNode('ask', ({ said }) => ({ said: [`answer ${said.length}`] }))
      .addNode('confirm', () => ({ said: [`confirmed ${interrupt('sure?')}`] }))
      .addEdge(START, 'ask')
      .addConditionalEdges('ask', ({ said }) => (said[0] === 'confirm' ? 'confirm' : END))
      .addEdge('confirm', END)
      .compile({ checkpointer: saver() });

  it('goes on in a thread, back in its history, and forks', async () => {
    await graph().invoke({ said: ['one'] }, thread('t1'));
    expect((await graph().invoke({ said: ['two'] }, thread('t1'))).said).toEqual([
      'one',
      'answer 1',
      'two',
      'answer 3',
    ]);
    expect((await graph().getState(thread('t1', { actor_id: 'other' }))).values).toEqual({});
    const history = await all(graph().getStateHistory(thread('t1')));
    const lengths = history.map(({ values }) => values.said?.length ?? 0);
    expect(lengths).toEqual([4, 3, 2, 2, 1, 0]);
    expect(await all(graph().getStateHistory(thread('t1'), { limit: 2 }))).toHaveLength(2);
    const inputs = await all(graph().getStateHistory(thread('t1'), { filter: { source: 'input' } }));
    expect(inputs.map(({ metadata }) => metadata?.step)).toEqual([2, -1]);
    const early = history[3];
    const before = { before: early?.config ?? {} };
    expect(await all(graph().getStateHistory(thread('t1'), before))).toHaveLength(2);
    expect((await graph().invoke({ said: ['other'] }, early?.config)).said).toEqual([
      'one',
      'answer 1',
      'other',
      'answer 3',
    ]);
    expect((await graph().getState(thread('t1'))).values.said?.[2]).toBe('other');
  });

  it('waits at an interrupt for its answer, and forgets a thread', async () => {
    const stopped = await graph().invoke({ said: ['confirm'] }, thread('t2'));
    expect(stopped).toMatchObject({ __interrupt__: [{ value: 'sure?' }] });
    expect((await graph().invoke(new Command({ resume: 'yes' }), thread('t2'))).said.at(-1)).toBe('confirmed yes');
    await saver().deleteThread('t2');
    expect((await graph().getState(thread('t2'))).values).toEqual({});
    await expect(saver().getTuple({})).rejects.toThrow('thread_id');
    expect(await memory.retrieveMemories({ memoryId, namespacePath: '/', query: 'answer' })).toEqual([]);
  });

  it('keeps items as records, finds and filters them', async () => {
    const store = new MemoryStore({ memoryId, client: memory });
    const place = ['notes', 'jörg@x/y'];
    expect(await store.get(place, 'k?')).toBeNull();
    await store.put(place, 'k?', { number: 1, nested: { list: [null, 'é\u0000'] } });
    const first = await store.get(place, 'k?');
    expect(first).toMatchObject({
      namespace: place,
      key: 'k?',
      value: { number: 1, nested: { list: [null, 'é\u0000'] } },
    });
    await store.put(place, 'k?', { number: 2 });
    const second = await store.get(place, 'k?');
    expect(second?.value).toEqual({ number: 2 });
    expect(second?.createdAt).toEqual(first?.createdAt);
    await store.put(['notes', 'jörg@x'], 'n1', { text: 'A sailing boat in Oslo.' });
    await store.put(['notes', 'jörg@x'], 'n2', { text: 'Bread and butter.' });
    await store.put(['notes', 'hidden'], 'n3', { text: 'Another boat.' }, false);
    const best = await store.search(['notes'], { query: 'a boat', limit: 5 });
    expect(best[0]).toMatchObject({ key: 'n1', value: { text: 'A sailing boat in Oslo.' } });
    expect(best.map(({ key }) => key)).not.toContain('n3');
    expect(best[0]?.score).toBeGreaterThan(0);
    const keys = async (filter: object) => (await store.search(['notes'], { filter })).map(({ key }) => key);
    expect(await keys({ number: { $gt: 1, $lte: 2 } })).toEqual(['k?']);
    expect(await keys({ number: { $gt: 'text' } })).toEqual([]);
    expect(await keys({ text: 'Another boat.' })).toEqual(['n3']);
    await expect(keys({ number: { $near: 1 } })).rejects.toThrow('$near');
    const pages = await Promise.all([0, 2, 4].map((offset) => store.search(['notes'], { offset, limit: 2 })));
    expect(
      pages
        .flat()
        .map(({ key }) => key)
        .sort(),
    ).toEqual(['k?', 'n1', 'n2', 'n3']);
    expect(await store.listNamespaces({ prefix: ['notes'] })).toEqual([
      ['notes', 'hidden'],
      ['notes', 'jörg@x'],
      place,
    ]);
    expect(await store.listNamespaces({ prefix: ['*', 'hidden'], maxDepth: 1 })).toEqual([['notes']]);
    await expect(store.put(place, 'k', { text: 'x' }, ['text'])).rejects.toThrow('index');
    await expect(store.put(place, 'k', { text: 'x'.repeat(16_001) })).rejects.toThrow('16000');
    await store.delete(place, 'k?');
    expect(await store.get(place, 'k?')).toBeNull();
  });

  it('finds in a node what a strategy extracted', async () => {
    await memory.createEvent({ memoryId, actorId: 'gil', sessionId: 'talk', messages: [['I own two dogs.', 'USER']] });
    const answering = new StateGraph(State)
      .addNode('answer', async (_state, { store }: LangGraphRunnableConfig) => {
        const known = await store?.search(['facts', 'gil'], { query: 'dogs' });
        return { said: (known ?? []).map(({ value }) => String(value.text)) };
      })
      .addEdge(START, 'answer')
      .compile({ store: new MemoryStore({ memoryId, client: memory }) });
    const said = async () => (await answering.invoke({ said: [] })).said;
    await expect.poll(said, { timeout: 30_000 }).toEqual(['I own two dogs.']);
  });
});
