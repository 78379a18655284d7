import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ListEventsCommand, ListMemoryRecordsCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newMemory, sayIn, texts } from '../support/memory.ts';
import { startTestPlatform } from '../support/platform-process.ts';

/** How often the server is killed; the long form of this test is a hundred times. */
const KILLS = Number(process.env.MEMORY_KILLS ?? 3);
const dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-memory-'));
const args = ['--sandbox', 'process', '--memory-extraction-delay-seconds', '0.05'];

afterAll(() => rm(dataDir, { recursive: true, force: true }));

const start = () => startTestPlatform({ dataDir, args });

describe('a server killed while it writes and extracts', () => {
  it('has every event that it acknowledged, and one record for each', async () => {
    let platform = await start();
    let clients = clientsOf(platform);
    const strategy = { name: 'facts', namespaceTemplates: ['/facts/{actorId}'] };
    const { id: memoryId } = await newMemory(clients, { memoryStrategies: [{ semanticMemoryStrategy: strategy }] });
    const acknowledged = new Set<string>();
    let count = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const current = clients;
      const writers = [1, 2, 3].map(async (writer) => {
        for (let failed = false; !failed; ) {
          const name = `item${count++}q${writer}`;
          try {
            await sayIn(current, { memoryId, actorId: 'jane', sessionId: `s${writer}` }, [[fact(name), 'USER']]);
            acknowledged.add(name);
            // Paced, so that what is to be extracted afterwards stays within the test's time.
            await sleep(10);
          } catch {
            failed = true;
          }
        }
      });
      await sleep(200 + Math.random() * 300);
      await platform.end('SIGKILL');
      await Promise.all(writers);
      clients.close();
      platform = await start();
      clients = clientsOf(platform);
    }
    const logged = await loggedNames(clients, memoryId);
    expect(acknowledged.size).toBeGreaterThan(KILLS);
    expect([...acknowledged].filter((name) => !logged.includes(name))).toEqual([]);
    expect(new Set(logged).size).toBe(logged.length);
    const { length } = logged;
    const named = (all: string[]) => all.map((text) => /item\w+/.exec(text)?.[0] ?? text).sort();
    const records = await allRecords(clients, memoryId, length);
    expect({ records: records.length, distinct: new Set(records).size }).toEqual({ records: length, distinct: length });
    expect(named(records)).toEqual(logged.toSorted());
    clients.close();
    await platform.dispose();
  }, 600_000);
});

/** Sentences of which no two resemble each other enough to be taken for one. */
function fact(name: string): string {
  const salt = [...name].map((c) => `${c}${name}`).join(' ');
  return `I keep ${name} ${salt} in Oslo.`;
}

async function loggedNames({ data }: Clients, memoryId: string): Promise<string[]> {
  const names: string[] = [];
  for (const sessionId of ['s1', 's2', 's3']) {
    for (let nextToken: string | undefined, first = true; first || nextToken; first = false) {
      const page = await data.send(
        new ListEventsCommand({ memoryId, actorId: 'jane', sessionId, maxResults: 100, nextToken }),
      );
      nextToken = page.nextToken;
      for (const event of page.events ?? []) {
        const text = event.payload?.[0]?.conversational?.content?.text ?? '';
        names.push(/item\w+/.exec(text)?.[0] ?? '');
      }
    }
  }
  return names;
}

/** Waits until extraction has come to its end, which is when there are as many records as events. */
async function allRecords(clients: Clients, memoryId: string, wanted: number): Promise<string[]> {
  let found: string[] = [];
  for (const deadline = Date.now() + 120_000; Date.now() < deadline; await sleep(300)) {
    found = [];
    for (let nextToken: string | undefined, first = true; first || nextToken; first = false) {
      const input = { memoryId, namespacePath: '/facts', maxResults: 100, nextToken };
      const page = await clients.data.send(new ListMemoryRecordsCommand(input));
      nextToken = page.nextToken;
      found.push(...texts(page.memoryRecordSummaries ?? []));
    }
    if (found.length >= wanted) break;
  }
  return found;
}
