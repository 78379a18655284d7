import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BatchCreateMemoryRecordsCommand, RetrieveMemoryRecordsCommand } from '@aws-sdk/client-bedrock-agentcore';
import { Pool } from 'undici';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { openLocalEmbedder } from '../../packages/platform/src/kernel/embeddings/index.ts';
import { type Clients, clientsOf } from '../../tests/support/clients.ts';
import { embeddingModel } from '../../tests/support/embedding-model.ts';
import { newMemory } from '../../tests/support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../../tests/support/platform-process.ts';
import { thisMachine } from '../support/machine.ts';
import { numberAfter } from '../support/options.ts';
import { signedRequest } from '../support/signed-requests.ts';
import { type GrowthResults, measureGrowth } from './growth.ts';
import { measureLarge } from './large.ts';
import { runMem0, timed } from './mem0.ts';
import { type ModelServer, startModelServer } from './model-server.ts';
import { keepResults, type MemoryResults, type PlatformResults, type Timed, table } from './results.ts';
import { scriptedReply } from './scripted-model.ts';
import { realSentences } from './sentences.ts';

const FULL = {
  sequential: 2000,
  parallel: 20_000,
  log: 20_000,
  records: 10_000,
  searches: 300,
  mem0: 100,
  inferred: 30,
};
const QUICK = { sequential: 200, parallel: 1500, log: 1500, records: 500, searches: 50, mem0: 20, inferred: 5 };
const CONNECTIONS = 64;
const LARGE_QUERIES = 100;
const MAX_EMBEDDED = 100_000;
const INDEX_WAIT_MS = 900_000;

/**
 * `npm run bench -- memory [--quick] [--keep] [--no-mem0] [--large 1000000 [--embedded 100000] [--only-large]] [--growth 20000 [--only-growth]]`: events one after the other and
 * all at once, lists of a short and of a long log, and retrieval over many records, through the real server on its embedded
 * database with signed requests; mem0 beside it with the same embedding model and the same scripted one. `--large` measures
 * retrieval and recall over so many records on a real PostgreSQL, `--only-large` nothing else. `--growth` measures
 * batches of records and events beside them while so many records come and the platform's own local model makes their vectors. `--keep` writes bench/results/memory.json and docs/benchmarks.md.
 */
export async function run(args: string[]): Promise<void> {
  const quick = args.includes('--quick');
  const size = quick ? QUICK : FULL;
  const machine = thisMachine({});
  const directory = await embeddingModel();
  const embedder = directory === undefined ? undefined : await openLocalEmbedder({ directory, clock: systemClock });
  const models = embedder && (await startModelServer(embedder, scriptedReply));
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  try {
    const results: MemoryResults = {};
    if (!args.includes('--only-large') && !args.includes('--only-growth')) {
      const texts = await realSentences(size.records + size.searches);
      const records = texts.slice(0, size.records);
      const queries = texts.slice(size.records);
      const measured = await measurePlatform(size, records, queries, models, say);
      const model = embedder?.model.split('/').at(-1) ?? 'none';
      results.platform = { at: new Date().toISOString(), quick, machine, model, ...measured };
      if (models && embedder && !args.includes('--no-mem0')) {
        say('mem0');
        const spoken = Array.from({ length: size.mem0 + size.inferred }, (_, n) => `${texts[n]} (${n})`);
        const found = await runMem0(models, {
          dimensions: embedder.dimensions,
          events: spoken.slice(0, size.mem0),
          inferred: spoken.slice(size.mem0),
          records,
          queries,
        });
        if (found) results.mem0 = found;
      }
    }
    const large = numberAfter(args, '--large');
    if (large !== undefined && embedder) {
      const dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-large-'));
      const embedded = numberAfter(args, '--embedded') ?? Math.min(MAX_EMBEDDED, large);
      results.large = await measureLarge({ records: large, embedded, queries: LARGE_QUERIES, embedder, dataDir, say });
      await rm(dataDir, { recursive: true, force: true });
    }
    const growth = numberAfter(args, '--growth');
    if (growth !== undefined && directory !== undefined) results.growth = await growthOf(growth, directory, say);
    process.stdout.write(`${table(results)}\n`);
    if (args.includes('--keep')) await keepResults(results);
  } finally {
    await models?.close();
    await embedder?.close();
  }
}

/** The real server with a local model of its own. */
async function growthOf(count: number, directory: string, say: (text: string) => void): Promise<GrowthResults> {
  const args = ['--sandbox', 'process', '--log-level', 'error', '--embeddings-directory', directory];
  const platform = await startTestPlatform({ args });
  const clients = clientsOf(platform);
  const pool = new Pool(platform.ready.endpoint, { connections: 2, pipelining: 1 });
  try {
    const { id } = await newMemory(clients);
    const call = caller(platform, pool);
    let written = 0;
    return await measureGrowth({
      texts: await realSentences(count),
      model: basename(directory),
      say,
      writeEvent: (text) => call(`/memories/${id}/events`, eventOf('grows', text)),
      async writeRecords(texts) {
        const path = `/memories/${id}/memoryRecords/batchCreate`;
        const first = written;
        const timestamp = Date.now() / 1000;
        written += texts.length;
        const took = await call(path, {
          records: texts.map((text, n) => ({
            ...{ requestIdentifier: `r${n}`, namespaces: [`/actors/${(first + n) % 10}`], content: { text } },
            timestamp,
          })),
        });
        if (written === count) await probe(clients, id);
        return took;
      },
      allHaveVectors: () => isFoundByMeaning(clients, id),
    });
  } finally {
    await pool.close();
    clients.close();
    await platform.dispose();
  }
}

const PROBE = { namespace: '/probe', text: 'The cat sleeps on the sofa.', query: 'feline napping' };

/** A record that shares no word with its query. */
async function probe({ data }: Clients, memoryId: string): Promise<void> {
  const { namespace, text } = PROBE;
  const record = {
    requestIdentifier: 'probe',
    namespaces: [namespace],
    content: { text },
    timestamp: new Date(),
  };
  await data.send(new BatchCreateMemoryRecordsCommand({ memoryId, records: [record] }));
}

async function isFoundByMeaning({ data }: Clients, memoryId: string): Promise<boolean> {
  const { namespace, query: searchQuery } = PROBE;
  const found = await data.send(
    new RetrieveMemoryRecordsCommand({ memoryId, namespace, searchCriteria: { searchQuery } }),
  );
  return (found.memoryRecordSummaries ?? []).length > 0;
}

type Measured = Pick<PlatformResults, 'oneEvent' | 'manyEvents' | 'list' | 'retrieve'>;

async function measurePlatform(
  size: typeof FULL,
  records: readonly string[],
  queries: readonly string[],
  models: ModelServer | undefined,
  say: (text: string) => void,
): Promise<Measured> {
  const endpoints = models ? ['--embeddings-url', models.url, '--embeddings-model', 'minilm'] : [];
  const platform = await startTestPlatform({ args: ['--sandbox', 'process', '--log-level', 'error', ...endpoints] });
  const clients = clientsOf(platform);
  const pool = new Pool(platform.ready.endpoint, { connections: CONNECTIONS, pipelining: 1 });
  try {
    const { id } = await newMemory(clients);
    const call = caller(platform, pool);
    const event = (session: string, n: number) =>
      call(`/memories/${id}/events`, eventOf(session, records[n % records.length] ?? ''));
    say('events');
    await measure(100, 1, (n) => event('warm', n));
    const oneEvent = await measure(size.sequential, 1, (n) => event('one', n));
    const many = await measure(size.parallel, CONNECTIONS, (n) => event(`many-${n % 16}`, n));
    const list = (session: string) => call(`/memories/${id}/actor/jane/sessions/${session}`, { maxResults: 20 });
    for (let n = 0; n < 20; n++) await event('short', n);
    await measure(size.log, CONNECTIONS, (n) => event('long', n));
    say('lists');
    await measure(50, 1, () => list('short'));
    const short = await measure(size.searches, 1, () => list('short'));
    const long = await measure(size.searches, 1, () => list('long'));
    say('records');
    await writeRecords(clients, id, records);
    const search = (n: number) =>
      call(`/memories/${id}/retrieve`, {
        namespacePath: '/actors',
        searchCriteria: { searchQuery: queries[n % queries.length], topK: 10 },
      });
    if (models) await untilIndexed(models, say);
    say('retrieval');
    await measure(size.searches, 1, search);
    const whole = await measure(size.searches, 1, search);
    const embedding = models ? (await measure(size.searches, 1, (n) => embedOnce(models, queries[n] ?? ''))).p50 : 0;
    const without = { ...whole, p50: Math.max(0, whole.p50 - embedding), p99: Math.max(0, whole.p99 - embedding) };
    return {
      oneEvent,
      manyEvents: { ...many, connections: CONNECTIONS },
      list: { short, long, events: size.log },
      retrieve: { records: records.length, lexical: models === undefined, without, whole },
    };
  } finally {
    await pool.close();
    clients.close();
    await platform.dispose();
  }
}

async function writeRecords({ data }: Clients, memoryId: string, texts: readonly string[]): Promise<void> {
  for (let start = 0; start < texts.length; start += 100) {
    const records = texts.slice(start, start + 100).map((text, n) => ({
      requestIdentifier: `r${n}`,
      namespaces: [`/actors/${(start + n) % 10}`],
      content: { text },
      timestamp: new Date(),
    }));
    await data.send(new BatchCreateMemoryRecordsCommand({ memoryId, records }));
  }
}

/** Waits until the platform asks for no more embeddings. */
async function untilIndexed({ calls }: ModelServer, say: (text: string) => void): Promise<void> {
  say('vectors in the background');
  for (const end = Date.now() + INDEX_WAIT_MS; Date.now() < end; ) {
    const before = calls.embeddings;
    await sleep(3000);
    if (calls.embeddings === before) return;
  }
  throw new Error('the vectors are not made');
}

async function embedOnce({ url }: ModelServer, input: string): Promise<number> {
  const started = performance.now();
  const body = JSON.stringify({ model: 'minilm', input: [input] });
  await (await fetch(`${url}/embeddings`, { method: 'POST', body })).arrayBuffer();
  return performance.now() - started;
}

function eventOf(sessionId: string, text: string): object {
  return {
    ...{ actorId: 'jane', sessionId, eventTimestamp: Date.now() / 1000, clientToken: randomUUID() },
    payload: [{ conversational: { role: 'USER', content: { text } } }],
  };
}

/** Sends a signed request and gives the milliseconds until its answer was whole; the signing is not counted. */
function caller({ ready, credentials }: TestPlatform, pool: Pool) {
  const endpoint = new URL(ready.endpoint);
  return async (path: string, content: object): Promise<number> => {
    const body = JSON.stringify(content);
    const headers = { 'content-type': 'application/json' };
    const signed = await signedRequest({ endpoint, path, headers, body, region: ready.region, credentials });
    const { host: _, ...rest } = signed.headers;
    const started = performance.now();
    const answer = await pool.request({ method: 'POST', path, headers: rest, body });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`${path}: ${answer.statusCode} ${text.slice(0, 300)}`);
    return performance.now() - started;
  };
}

async function measure(count: number, width: number, work: (n: number) => Promise<number>): Promise<Timed> {
  const times: number[] = [];
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < count) times.push(await work(next++));
    }),
  );
  const seconds = (performance.now() - started) / 1000;
  return { ...timed(times), perSecond: Math.round(count / seconds) };
}
