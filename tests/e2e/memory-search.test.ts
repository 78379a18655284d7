import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { BatchCreateMemoryRecordsCommand, RetrieveMemoryRecordsCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { embeddingModel } from '../support/embedding-model.ts';
import { newMemory } from '../support/memory.ts';
import { startTestPlatform } from '../support/platform-process.ts';

const model = await embeddingModel();
const dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-search-'));
const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
  await rm(dataDir, { recursive: true, force: true });
});

const FACTS = [
  'The physician prescribed antibiotics for an infection.',
  'Our cottage by the lake has a leaking roof.',
  'She adopted a puppy from the shelter.',
  'Quarterly revenue grew by twelve percent.',
];

async function keep(clients: Clients, memoryId: string, texts: string[], namespace = '/facts/jane'): Promise<void> {
  const records = texts.map((text, index) => ({
    requestIdentifier: `r${index}`,
    namespaces: [namespace],
    content: { text },
    timestamp: new Date(),
  }));
  const { failedRecords } = await clients.data.send(new BatchCreateMemoryRecordsCommand({ memoryId, records }));
  expect(failedRecords).toEqual([]);
}

const finder =
  (clients: Clients, memoryId: string) =>
  async (searchQuery: string, topK = 3) => {
    const input = { memoryId, namespacePath: '/facts', searchCriteria: { searchQuery, topK } };
    const { memoryRecordSummaries } = await clients.data.send(new RetrieveMemoryRecordsCommand(input));
    return (memoryRecordSummaries ?? []).map(({ content, score }) => ({ text: content?.text, score: score ?? 0 }));
  };

/** Ids of the processes that run an embedding model for this server. */
async function modelProcesses(server: number): Promise<number[]> {
  const children = await readFile(`/proc/${server}/task/${server}/children`, 'utf8');
  const found: number[] = [];
  for (const pid of children.split(' ').filter(Boolean)) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    if (command.includes('sentence-model-worker')) found.push(Number(pid));
  }
  return found;
}

/** Embeds a text as the counts of a few letters: nothing like meaning, but it tells what was asked for. */
async function letterServer(
  letters: string,
): Promise<{ url: string; asked: string[]; fail(on: boolean): void; server: Server }> {
  const asked: string[] = [];
  let failing = false;
  const server = createServer(async (req, res) => {
    const { input, model: name } = (await json(req)) as { input: string[]; model: string };
    if (failing) return void res.writeHead(503).end('{}');
    asked.push(...input.map((text) => `${name} ${req.headers.authorization} ${text}`));
    const data = input.map((text) => ({
      embedding: [...letters].map((letter) => 0.01 + text.split(letter).length - 1),
    }));
    res.setHeader('content-type', 'application/json').end(JSON.stringify({ data }));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    asked,
    server,
    fail: (on) => {
      failing = on;
    },
  };
}

describe.skipIf(!model)('search with a local model', () => {
  it('finds by meaning what shares no word, within the namespace', async () => {
    const platform = await startTestPlatform({ args: ['--sandbox', 'process', '--embeddings-directory', model ?? ''] });
    closing.push(() => platform.dispose());
    const clients = clientsOf(platform);
    closing.push(() => clients.close());
    const { id } = await newMemory(clients);
    await keep(clients, id, FACTS);
    await keep(clients, id, ['A doctor gave medicine to the patient.'], '/factsheets');
    const find = finder(clients, id);
    await expect
      .poll(async () => (await find('medicine from the doctor'))[0]?.text, { timeout: 20_000 })
      .toBe(FACTS[0]);
    await expect.poll(async () => (await find('a new dog'))[0]?.text, { timeout: 20_000 }).toBe(FACTS[2]);
    const found = await find('business results', 4);
    expect(found[0]?.text).toBe(FACTS[3]);
    expect(found.map(({ score }) => score)).toEqual(found.map(({ score }) => score).toSorted((a, b) => b - a));
    expect(found.every(({ text }) => FACTS.includes(text ?? ''))).toBe(true);
  });

  it('has the model in a process of its own, which may die and does not outlive the server', async () => {
    const args = ['--sandbox', 'process', '--embeddings-directory', model ?? ''];
    const platform = await startTestPlatform({ args });
    closing.push(() => platform.dispose());
    const clients = clientsOf(platform);
    closing.push(() => clients.close());
    expect(await modelProcesses(platform.pid)).toEqual([]);
    const { id } = await newMemory(clients);
    await keep(clients, id, FACTS);
    const find = finder(clients, id);
    const answers = () =>
      expect.poll(async () => (await find('a new dog'))[0]?.text, { timeout: 60_000 }).toBe(FACTS[2]);
    await answers();
    const [first = expect.fail('there is no process')] = await modelProcesses(platform.pid);
    process.kill(first, 'SIGKILL');
    await answers();
    const [second = expect.fail('there is no process')] = await modelProcesses(platform.pid);
    expect(second).not.toBe(first);
    expect(await platform.end('SIGTERM')).toBe(0);
    expect(existsSync(`/proc/${second}`)).toBe(false);

    const again = await startTestPlatform({ args, dataDir: platform.dataDir });
    closing.push(() => again.dispose());
    const other = clientsOf(again);
    closing.push(() => other.close());
    const search = { memoryId: id, namespacePath: '/facts', searchCriteria: { searchQuery: 'a new dog' } };
    await other.data.send(new RetrieveMemoryRecordsCommand(search));
    const [third = expect.fail('there is no process')] = await modelProcesses(again.pid);
    await again.end('SIGKILL');
    await expect.poll(() => existsSync(`/proc/${third}`), { timeout: 60_000 }).toBe(false);
  });
});

describe('search with an endpoint’s model', () => {
  it('embeds in the background, anew when the model changes, and falls back to words when it fails', async () => {
    const first = await letterServer('aeiou');
    closing.push(() => first.server.close());
    const start = (server: { url: string }, name: string) =>
      startTestPlatform({
        dataDir,
        args: ['--sandbox', 'process', '--embeddings-url', server.url, '--embeddings-model', name],
        env: { AGENTPLATFORM_EMBEDDINGS_KEY: 'sk-test' },
      });
    let platform = await start(first, 'letters-1');
    let clients = clientsOf(platform);
    const { id } = await newMemory(clients);
    await keep(clients, id, ['zzz aaaaa', 'zzz uuuuu', 'zzz iiiii']);
    await expect.poll(async () => (await finder(clients, id)('uuu'))[0]?.text, { timeout: 20_000 }).toBe('zzz uuuuu');
    expect(first.asked).toContain('letters-1 Bearer sk-test zzz uuuuu');
    expect(platform.log()).not.toContain('sk-test');
    first.fail(true);
    expect((await finder(clients, id)('zzz')).length).toBe(3);
    expect(await finder(clients, id)('uuu')).toEqual([]);
    expect(platform.log()).toContain('by words alone');
    clients.close();
    await platform.end();

    const second = await letterServer('iu');
    closing.push(() => second.server.close());
    platform = await start(second, 'letters-2');
    const last = platform;
    closing.push(() => last.dispose());
    clients = clientsOf(platform);
    const { close } = clients;
    closing.push(() => close());
    await expect.poll(async () => (await finder(clients, id)('iii'))[0]?.text, { timeout: 20_000 }).toBe('zzz iiiii');
    expect(second.asked.filter((each) => each.startsWith('letters-2') && each.includes('zzz'))).toHaveLength(3);
  });
});
