import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  BatchCreateMemoryRecordsCommand,
  ListEventsCommand,
  ListMemoryExtractionJobsCommand,
  ListMemoryRecordsCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { type Clients, clientsOf } from './clients.ts';
import { newMemory, sayIn } from './memory.ts';
import { startTestPlatform } from './platform-process.ts';

export interface KillOptions {
  /** How often the server is killed. */
  kills: number;
  /** Pause of each writer after an acknowledged event, in milliseconds. */
  paceMs: number;
  /** Told after each kill. */
  onKill?(kill: number, acknowledged: number): void;
}

/** What became of everything that the server acknowledged; every list should be empty. */
export interface Account {
  kills: number;
  acknowledgedEvents: number;
  /** In the log: those that were acknowledged, and those whose answer the kill swallowed. */
  events: number;
  extractedRecords: number;
  acknowledgedRecords: number;
  lostEvents: string[];
  doubledEvents: string[];
  /** Events without a record. */
  unextracted: string[];
  doubledRecords: string[];
  lostRecords: string[];
  /** Extraction jobs that were given up, with their reasons. */
  failedJobs: string[];
}

const SESSIONS = ['s1', 's2', 's3'];
const STALLED_MS = 120_000;

/**
 * Kills the server with SIGKILL at random moments while three writers add events, a fourth adds records of its own and
 * extraction runs; starts it on the same data each time, and at the end accounts for every event and every record.
 */
export async function killWhileRemembering(options: KillOptions): Promise<Account> {
  const dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-faults-'));
  const start = () =>
    startTestPlatform({ dataDir, args: ['--sandbox', 'process', '--memory-extraction-delay-seconds', '0.05'] });
  let platform = await start();
  try {
    let clients = clientsOf(platform);
    const strategy = { name: 'facts', namespaceTemplates: ['/facts/{actorId}'] };
    const { id: memoryId } = await newMemory(clients, { memoryStrategies: [{ semanticMemoryStrategy: strategy }] });
    const acknowledged = new Set<string>();
    const ownRecords = new Set<string>();
    let count = 0;
    for (let kill = 1; kill <= options.kills; kill++) {
      const current = clients;
      const until = async (work: (name: string) => Promise<unknown>, kept: Set<string>): Promise<void> => {
        for (;;) {
          const name = `item${count++}`;
          try {
            await work(name);
          } catch {
            return;
          }
          kept.add(name);
          await sleep(options.paceMs);
        }
      };
      const writers = SESSIONS.map((sessionId) =>
        until((name) => sayIn(current, { memoryId, actorId: 'jane', sessionId }, [[fact(name), 'USER']]), acknowledged),
      );
      const ownWriter = until(async (name) => {
        const record = {
          requestIdentifier: name,
          namespaces: ['/own'],
          content: { text: name },
          timestamp: new Date(),
        };
        await current.data.send(new BatchCreateMemoryRecordsCommand({ memoryId, records: [record] }));
        await sleep(20);
      }, ownRecords);
      const before = acknowledged.size;
      for (let waited = 0; acknowledged.size === before && waited < 5_000; waited += 10) await sleep(10);
      await sleep(Math.random() * 800);
      await platform.end('SIGKILL');
      await Promise.all([...writers, ownWriter]);
      options.onKill?.(kill, acknowledged.size);
      clients.close();
      platform = await start();
      clients = clientsOf(platform);
    }
    const logged = await loggedNames(clients, memoryId);
    const extracted = await extractedNames(clients, memoryId, new Set(logged).size);
    const own = await recordTexts(clients, memoryId, '/own');
    const failed = await clients.data.send(new ListMemoryExtractionJobsCommand({ memoryId, maxResults: 50 }));
    clients.close();
    const missing = (wanted: Iterable<string>, there: string[]): string[] => {
      const set = new Set(there);
      return [...wanted].filter((name) => !set.has(name));
    };
    return {
      kills: options.kills,
      acknowledgedEvents: acknowledged.size,
      events: logged.length,
      extractedRecords: extracted.length,
      acknowledgedRecords: ownRecords.size,
      lostEvents: missing(acknowledged, logged),
      doubledEvents: doubled(logged),
      unextracted: missing(logged, extracted),
      doubledRecords: [...doubled(extracted), ...doubled(own)],
      lostRecords: missing(ownRecords, own),
      failedJobs: (failed.jobs ?? []).map(({ failureReason }) => failureReason ?? 'no reason'),
    };
  } finally {
    await platform.dispose();
    await rm(dataDir, { recursive: true, force: true });
  }
}

/** Whether everything is there, and once. */
export function isWhole(account: Account): boolean {
  return Object.values(account).every((value) => !Array.isArray(value) || value.length === 0);
}

/** Sentences of which no two resemble each other enough to be taken for one. */
function fact(name: string): string {
  const salt = [...name].map((c) => `${c}${name}`).join(' ');
  return `I keep ${name} ${salt} in Oslo.`;
}

function nameIn(text: string): string {
  return /item\d+/.exec(text)?.[0] ?? text;
}

function doubled(names: readonly string[]): string[] {
  const seen = new Set<string>();
  return names.filter((name) => seen.size === seen.add(name).size);
}

async function loggedNames({ data }: Clients, memoryId: string): Promise<string[]> {
  const names: string[] = [];
  for (const sessionId of SESSIONS) {
    let nextToken: string | undefined;
    do {
      const input = { memoryId, actorId: 'jane', sessionId, maxResults: 100, nextToken };
      const page = await data.send(new ListEventsCommand(input));
      nextToken = page.nextToken;
      for (const { payload } of page.events ?? [])
        names.push(nameIn(payload?.[0]?.conversational?.content?.text ?? ''));
    } while (nextToken);
  }
  return names;
}

async function recordTexts({ data }: Clients, memoryId: string, namespacePath: string): Promise<string[]> {
  const texts: string[] = [];
  let nextToken: string | undefined;
  do {
    const page = await data.send(new ListMemoryRecordsCommand({ memoryId, namespacePath, maxResults: 100, nextToken }));
    nextToken = page.nextToken;
    texts.push(...(page.memoryRecordSummaries ?? []).map(({ content }) => nameIn(content?.text ?? '')));
  } while (nextToken);
  return texts;
}

/** Waits until there are as many records as events, or until no more come for two minutes. */
async function extractedNames(clients: Clients, memoryId: string, wanted: number): Promise<string[]> {
  let found: string[] = [];
  for (let last = performance.now(); found.length < wanted && performance.now() - last < STALLED_MS; await sleep(500)) {
    const now = await recordTexts(clients, memoryId, '/facts');
    if (now.length !== found.length) last = performance.now();
    found = now;
  }
  return found;
}
