import { setTimeout as sleep } from 'node:timers/promises';
import { unitVector } from '../../packages/platform/src/kernel/embeddings/embedder.ts';
import type { Embedder } from '../../packages/platform/src/kernel/embeddings/index.ts';
import { startModelServer } from '../memory/model-server.ts';
import { Connection } from '../support/connection.ts';
import { median, percentile } from '../support/statistics.ts';
import { BenchGateways } from './bench-gateways.ts';
import { manyTools } from './many-tools.ts';
import { callOf } from './orders-api.ts';

/** Milliseconds of a search over one connection, one after the other, signed for. */
export interface Searching {
  tools: number;
  words: { p50: number; p99: number };
  /** By meaning and words. `embedding`: the median of what the model takes to answer, which `whole` has in it. */
  meaning: { p50: number; p99: number; embedding: number };
}

export interface SearchSize {
  /** Each sentence becomes a tool. */
  sentences: readonly string[];
  queries: readonly string[];
}

const MODEL = 'words';
/** As many numbers as the platform's own model gives. */
const DIMENSIONS = 384;
/** For the vectors of all tools. */
const MOST_MS = 300_000;

/** The same tools searched without a model, on `plain`, and with one, on a platform of its own. */
export async function search(plain: BenchGateways, url: string, size: SearchSize): Promise<Searching> {
  const words = await measure(plain, url, size, false);
  const models = await startModelServer(wordVectors, () => '');
  try {
    const gateways = await BenchGateways.start(['--embeddings-url', models.url, '--embeddings-model', MODEL]);
    try {
      const meaning = await measure(gateways, url, size, true);
      // It has given each vector before, as it had in the searches: what is left is the way to it.
      const embedding = median(await each(size.queries, (query) => embed(models.url, query)));
      return { tools: size.sentences.length, words, meaning: { ...meaning, embedding } };
    } finally {
      await gateways.end();
    }
  } finally {
    await models.close();
  }
}

async function measure(gateways: BenchGateways, url: string, { sentences, queries }: SearchSize, byMeaning: boolean) {
  const id = await gateways.create('searched', { protocolConfiguration: { mcp: { searchType: 'SEMANTIC' } } });
  await gateways.keep('searched', manyTools(url, sentences));
  await gateways.register(id, 'things', { key: 'searched' });
  await untilSearched(gateways, id, queries[0] ?? '', byMeaning);
  const requests = (await Promise.all(queries.map((query) => gateways.signed(id, asking(query), 1)))).flat();
  const connection = await Connection.open('127.0.0.1', gateways.port);
  try {
    const send = (request: Buffer): Promise<unknown> => connection.send(request);
    // The first time warms up.
    await each(requests, send);
    const times = await each(requests, send);
    return { p50: median(times), p99: percentile(times, 0.99) };
  } finally {
    connection.close();
  }
}

const asking = (query: string): object => callOf('x_agentplatform_search', { query });

interface Answered {
  structuredContent: { tools: unknown[]; note?: string };
}

/** Resolves once tools are found in that way: a note says what is missing of the other one. Rejects after five minutes. */
async function untilSearched(gateways: BenchGateways, id: string, query: string, byMeaning: boolean): Promise<void> {
  let said: string | undefined;
  for (const until = Date.now() + MOST_MS; Date.now() < until; await sleep(500)) {
    const { structuredContent } = await gateways.ask<Answered>(id, asking(query));
    said = structuredContent.note;
    if (structuredContent.tools.length > 0 && (said === undefined) === byMeaning) return;
  }
  throw new Error(`nothing is found in that way: ${said}`);
}

/** Milliseconds of each, one after the other. */
async function each<One>(all: readonly One[], work: (one: One) => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (const one of all) {
    const begun = performance.now();
    await work(one);
    times.push(performance.now() - begun);
  }
  return times;
}

async function embed(url: string, text: string): Promise<void> {
  const body = JSON.stringify({ model: MODEL, input: [text] });
  await (await fetch(`${url}/embeddings`, { method: 'POST', body })).arrayBuffer();
}

/** Texts with the same words have near vectors. It stands for a real model: searching takes the same time whatever the numbers are. */
const wordVectors: Embedder = {
  model: MODEL,
  dimensions: DIMENSIONS,
  embed: async (texts) =>
    texts.map((text) => {
      const counts = new Float32Array(DIMENSIONS);
      for (const word of text.toLowerCase().match(/\w+/g) ?? ['']) {
        let place = 7;
        for (let at = 0; at < word.length; at += 1) place = (place * 31 + word.charCodeAt(at)) >>> 0;
        counts[place % DIMENSIONS] = (counts[place % DIMENSIONS] ?? 0) + 1;
      }
      return unitVector(counts);
    }),
  close: async () => undefined,
};
