import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  BatchCreateMemoryRecordsCommand,
  ListMemoryExtractionJobsCommand,
  RetrieveMemoryRecordsCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openBedrockEmbedder, openHttpEmbedder } from '../../packages/platform/src/kernel/embeddings/index.ts';
import {
  createModels,
  createReranker,
  type Model,
  type ModelEndpoint,
  ModelError,
  PROVIDERS,
  type Provider,
} from '../../packages/platform/src/kernel/models/index.ts';
import { createOutbound } from '../../packages/platform/src/kernel/outbound/index.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newMemory, sayIn } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import {
  attempt,
  type Behaviour,
  ENDLESS,
  fastClock,
  MIB,
  openHostileServer,
  SENSELESS,
  SILENT,
  textOf,
} from './hostile-server.ts';

const KEY = 'sk-Zx81c0ffee-not-to-be-seen';

const json =
  (body: string, head = 'HTTP/1.1 200 OK'): Behaviour =>
  (socket) =>
    void socket.end(
      `${head}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );

/** The minute that each service is given is 1.5 seconds. */
const outbound = createOutbound({ anywhere: true, clock: fastClock(40) });
const endpointAt = (origin: string): ModelEndpoint => ({ url: `${origin}/v1`, model: 'm', apiKey: KEY, outbound });

function modelAt(origin: string, provider: Provider = 'openai'): Model {
  const config = { name: 'm', provider, model: 'm', url: `${origin}/v1`, key: KEY, answersFor: [] };
  const { default: model } = createModels([config], undefined, { outbound, timeoutMs: 60_000 });
  if (!model) throw new Error('it was made just now');
  return model;
}
const QUESTION = {
  messages: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'u' }] }],
  maxTokens: 10,
};
const whole = async (events: AsyncIterable<unknown>): Promise<void> => {
  for await (const _event of events);
};

/** Each kind of service that the operator may name, asked for something. */
const SERVICES: Record<string, (origin: string) => Promise<unknown>> = {
  ...Object.fromEntries(
    PROVIDERS.flatMap((provider) => [
      [`a model of ${provider}`, (origin: string) => modelAt(origin, provider).generate(QUESTION)],
      [`a model of ${provider} that streams`, (origin: string) => whole(modelAt(origin, provider).stream(QUESTION))],
    ]),
  ),
  'an embedding model': (origin) => openHttpEmbedder(endpointAt(origin)),
  'an embedding model of Bedrock': (origin) => openBedrockEmbedder(endpointAt(origin)),
  'a rerank model': (origin) => createReranker(endpointAt(origin)).score('q', ['a', 'b']),
};

describe.each(Object.entries(SERVICES))('%s', (_service, ask) => {
  it('is given up in bounded time and bytes, whatever it does, and is named to nobody', async () => {
    for (const { name, origin, error, requests, sent } of await attempt({ ...SILENT, ...ENDLESS, ...SENSELESS }, ask)) {
      expect(error, name).toBeInstanceOf(ModelError);
      expect(requests, name).toBe(1);
      // What only frames an answer is bounded by time.
      if (name !== 'an endless extension of a chunk') expect(sent, name).toBeLessThan(16 * MIB);
      for (const secret of [new URL(origin).port, '127.0.0.1', KEY])
        expect(textOf(error, 0), name).not.toContain(secret);
      expect(textOf(error), name).not.toContain(KEY);
    }
  }, 60_000);

  it('gets its key, and nobody else does: no redirect is followed, and what says the key is not repeated', async () => {
    const elsewhere = await openHostileServer(json('{}'));
    const said = JSON.stringify({ error: `Incorrect API key provided: ${KEY}.` });
    const behaviours: Record<string, Behaviour> = {
      'says the key': json(said, 'HTTP/1.1 401 Unauthorized'),
      redirects: (socket) =>
        void socket.end(`HTTP/1.1 307 Elsewhere\r\nlocation: ${elsewhere.origin}/v1\r\ncontent-length: 0\r\n\r\n`),
    };
    for (const behave of Object.values(behaviours)) {
      const server = await openHostileServer(behave);
      const error = await ask(server.origin).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ModelError);
      // The control: it had it.
      expect(server.heads[0]).toMatch(
        new RegExp(`^(authorization: Bearer|x-api-key:|x-goog-api-key:) ${KEY}\r$`, 'mi'),
      );
      expect(textOf(error)).not.toContain(KEY);
      expect(textOf(error)).toMatch(/it said: (\{"error":"Incorrect API key provided: \[redacted\]\."\})?$/);
      await server.close();
    }
    expect(elsewhere.heads).toEqual([]);
    await elsewhere.close();
  });
});

describe('vectors', () => {
  it.each([
    ['of no numbers', '["a"]'],
    ['of nothing', '[]'],
    ['of null', '[null]'],
    ['that are no list', '"AAAA"'],
    ['without a direction', '[0,0,0]'],
    ['too large for their format', '[1e300,1]'],
    ['nested', '[[1]]'],
  ])('%s are refused', async (_name, vector) => {
    const openai = await openHostileServer(json(`{"data":[{"embedding":${vector}}]}`));
    await expect(openHttpEmbedder(endpointAt(openai.origin))).rejects.toThrow('not a vector');
    const bedrock = await openHostileServer(json(`{"embedding":${vector}}`));
    await expect(openBedrockEmbedder(endpointAt(bedrock.origin))).rejects.toThrow('not a vector');
    await Promise.all([openai.close(), bedrock.close()]);
  });
});

describe('counts of tokens', () => {
  const used = async (count: string): Promise<unknown> => {
    const usage = `"usage":{"prompt_tokens":${count},"completion_tokens":7}`;
    const server = await openHostileServer(json(`{"choices":[{"message":{"content":"hello"}}],${usage}}`));
    return modelAt(server.origin)
      .generate(QUESTION)
      .finally(() => server.close());
  };

  it.each(['-1', '1.5', '1e300', 'null'])('of %s count as none', async (count) => {
    expect(await used(count)).toMatchObject({ usage: { input: 0, output: 7 } });
  });

  it.each(['"many"', '{}'])('of %s make no answer', async (count) => {
    await expect(used(count)).rejects.toThrow(ModelError);
  });
});

/** A service for embeddings and chats that does as it is told. */
class Service {
  /** The vector of a text; undefined refuses it. */
  vector: (text: string) => number[] | undefined = (text) => [text.includes('tea') ? 1 : 0, 1, 0];
  mode: 'answers' | 'silent' | 'fails' = 'answers';
  readonly held = new Set<unknown>();
  readonly #server: Server;

  constructor() {
    this.#server = createServer((req, res) => {
      let text = '';
      req.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      req.on('end', () => {
        if (this.mode === 'silent') {
          this.held.add(res);
          return void res.on('close', () => this.held.delete(res));
        }
        if (this.mode === 'fails')
          return void res.writeHead(500).end(`the key ${req.headers.authorization} at ${req.headers.host}`);
        const vectors = (JSON.parse(text).input ?? []).map(this.vector);
        if (vectors.includes(undefined)) return void res.writeHead(400).end('{"error":"too long"}');
        const data = vectors.map((embedding: number[]) => ({ embedding }));
        res.setHeader('content-type', 'application/json').end(JSON.stringify({ data }));
      });
    });
  }

  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

describe('a platform with a model that misbehaves', () => {
  let dataDir: string;
  let service: Service;
  let url: string;
  let platform: TestPlatform | undefined;
  let clients: Clients;

  const start = async (kind: 'embeddings' | 'models'): Promise<TestPlatform> => {
    const args = ['--sandbox', 'process', '--memory-extraction-delay-seconds', '0.05', `--${kind}-url`, url];
    platform = await startTestPlatform({ dataDir, args, env: { [`AGENTPLATFORM_${kind.toUpperCase()}_KEY`]: KEY } });
    clients = clientsOf(platform);
    return platform;
  };
  const keep = (memoryId: string, texts: string[]) =>
    clients.data.send(
      new BatchCreateMemoryRecordsCommand({
        memoryId,
        records: texts.map((text, n) => ({
          requestIdentifier: `r${n}`,
          namespaces: ['/facts'],
          content: { text },
          timestamp: new Date(),
        })),
      }),
    );
  /** What is found by meaning: none of the words is in it. */
  const found = async (memoryId: string, searchQuery = 'teapot'): Promise<string[]> => {
    const criteria = { namespace: '/facts', searchCriteria: { searchQuery, topK: 1 } };
    const { memoryRecordSummaries = [] } = await clients.data.send(
      new RetrieveMemoryRecordsCommand({ memoryId, ...criteria }),
    );
    return memoryRecordSummaries.map(({ content }) => content?.text ?? '');
  };

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-models-'));
    service = new Service();
    url = await service.open();
  });
  afterEach(async () => {
    clients?.close();
    await platform?.dispose();
    await service.close();
    await rm(dataDir, { recursive: true, force: true });
  });

  it('starts though its embedding model never answers, and uses it once it does', async () => {
    service.mode = 'silent';
    const { log } = await start('embeddings');
    // Memory and the gateways have each asked it.
    expect(service.held.size).toBe(2);
    const { id } = await newMemory(clients);
    await keep(id, ['He drinks tea.', 'He has a dog.']);
    expect(await found(id, 'dog')).toEqual(['He has a dog.']);
    // The control: by words alone it is not found.
    expect(await found(id)).toEqual([]);
    service.mode = 'answers';
    // As a service does that is started again.
    for (const held of service.held) (held as { destroy(): void }).destroy();
    await expect.poll(() => found(id), { timeout: 60_000 }).toEqual(['He drinks tea.']);
    expect(log()).toContain('the embedding model cannot be used');
    expect(log()).not.toContain(KEY);
  }, 120_000);

  it('starts though its embedding model gives vectors that no index takes', async () => {
    service.vector = () => Array(3000).fill(1);
    const { log } = await start('embeddings');
    const { id } = await newMemory(clients);
    await keep(id, ['He has a dog.']);
    expect(await found(id, 'dog')).toEqual(['He has a dog.']);
    expect(log()).toContain('too long');
  }, 60_000);

  it('makes vectors of what comes after a text that the model does not take', async () => {
    service.vector = (text) => (text.startsWith('no') ? undefined : [text.includes('tea') ? 1 : 0, 1, 0]);
    await start('embeddings');
    const { id: attacker } = await newMemory(clients);
    await keep(
      attacker,
      Array.from({ length: 40 }, (_, n) => `no ${n}`),
    );
    const { id } = await newMemory(clients);
    await keep(id, ['He drinks tea.', 'He has a dog.']);
    await expect.poll(() => found(id), { timeout: 60_000 }).toEqual(['He drinks tea.']);
  }, 90_000);

  it('tells users of a failed extraction neither where the model is nor its key, and ends though it never answers', async () => {
    service.mode = 'fails';
    const { log, end } = await start('models');
    const facts = { semanticMemoryStrategy: { name: 'facts', namespaceTemplates: ['/facts/{actorId}'] } };
    const { id: memoryId } = await newMemory(clients, { memoryStrategies: [facts] });
    const say = () => sayIn(clients, { memoryId, actorId: 'jane', sessionId: 's' }, [['I like tea.', 'USER']]);
    await say();
    const failed = async () => (await clients.data.send(new ListMemoryExtractionJobsCommand({ memoryId }))).jobs ?? [];
    await expect.poll(async () => (await failed()).length, { timeout: 90_000 }).toBe(1);
    expect((await failed())[0]?.failureReason).toBe('the service of the model answered 500');
    // The control: what is kept out came, with the rest of it.
    expect(log()).toMatch(/the key .{0,20}\[redacted\]/);
    expect(log()).not.toContain(KEY);
    service.mode = 'silent';
    await say();
    await expect.poll(() => service.held.size, { timeout: 30_000 }).toBe(1);
    expect(await end()).toBe(0);
    await expect.poll(() => service.held.size, { timeout: 10_000 }).toBe(0);
  }, 180_000);
});
