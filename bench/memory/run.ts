import { randomUUID } from 'node:crypto';
import { BatchCreateMemoryRecordsCommand } from '@aws-sdk/client-bedrock-agentcore';
import { Pool } from 'undici';
import { clientsOf } from '../../tests/support/clients.ts';
import { newMemory } from '../../tests/support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../../tests/support/platform-process.ts';
import { signedRequest } from '../support/signed-requests.ts';
import { percentile } from '../support/statistics.ts';

const FULL = { sequential: 2000, parallel: 20_000, log: 20_000, records: 10_000, searches: 300 };
const QUICK = { sequential: 200, parallel: 1500, log: 1500, records: 1000, searches: 50 };
const CONNECTIONS = 64;
const WORDS =
  'river mountain coffee train museum violin harbour winter garden lantern bread engine letter island market window'.split(
    ' ',
  );

/**
 * `npm run bench -- memory [--quick]`: events one after the other and all at once, lists of a short and of a long log, and
 * searches by words over many records, through the real server on its embedded database with signed requests.
 */
export async function run(args: string[]): Promise<void> {
  const size = args.includes('--quick') ? QUICK : FULL;
  const platform = await startTestPlatform({ args: ['--sandbox', 'process', '--log-level', 'error'] });
  const clients = clientsOf(platform);
  const pool = new Pool(platform.ready.endpoint, { connections: CONNECTIONS, pipelining: 1 });
  try {
    const { id } = await newMemory(clients);
    const call = caller(platform, pool);
    const event = (session: string) =>
      call(`/memories/${id}/events`, {
        actorId: 'jane',
        sessionId: session,
        eventTimestamp: Date.now() / 1000,
        clientToken: randomUUID(),
        payload: [
          { conversational: { role: 'USER', content: { text: 'I moved to Berlin last week and I like it there.' } } },
        ],
      });
    const one = await timed(size.sequential, 1, () => event('one'));
    say(`CreateEvent, one connection: p50 ${one.p50} ms, p99 ${one.p99} ms`);
    const many = await timed(size.parallel, CONNECTIONS, (n) => event(`many-${n % 16}`));
    say(`CreateEvent, ${CONNECTIONS} connections: ${many.perSecond} events/s, p50 ${many.p50} ms, p99 ${many.p99} ms`);

    const list = (session: string) => call(`/memories/${id}/actor/jane/sessions/${session}`, { maxResults: 20 });
    for (let n = 0; n < 20; n++) await event('short');
    await timed(size.log, CONNECTIONS, () => event('long'));
    const short = await timed(size.sequential, 1, () => list('short'));
    const long = await timed(size.sequential, 1, () => list('long'));
    say(`ListEvents of 20: p50 ${short.p50} ms; the first 20 of ${size.log}: p50 ${long.p50} ms`);

    for (let start = 0; start < size.records; start += 100) {
      const records = Array.from({ length: 100 }, (_, n) => ({
        requestIdentifier: `r${n}`,
        namespaces: [`/actors/${(start + n) % 10}`],
        content: { text: sentence(start + n) },
        timestamp: new Date(),
      }));
      await clients.data.send(new BatchCreateMemoryRecordsCommand({ memoryId: id, records }));
    }
    const search = (n: number) =>
      call(`/memories/${id}/retrieve`, {
        namespacePath: '/actors',
        searchCriteria: { searchQuery: sentence(n * 7), topK: 10 },
      });
    const found = await timed(size.searches, 1, search);
    say(`RetrieveMemoryRecords by words over ${size.records}: p50 ${found.p50} ms, p99 ${found.p99} ms`);
  } finally {
    await pool.close();
    clients.close();
    await platform.dispose();
  }
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function sentence(seed: number): string {
  return Array.from({ length: 8 }, (_, n) => WORDS[(seed * (n + 3) + n * n) % WORDS.length]).join(' ');
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

async function timed(count: number, width: number, work: (n: number) => Promise<number>) {
  const times: number[] = [];
  let next = 0;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < count) times.push(await work(next++));
    }),
  );
  const seconds = (performance.now() - started) / 1000;
  return {
    p50: percentile(times, 0.5).toFixed(2),
    p99: percentile(times, 0.99).toFixed(2),
    perSecond: Math.round(count / seconds),
  };
}
