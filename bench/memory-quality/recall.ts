import { fuse, type Hit, lexicalSearch, type VectorIndex } from '../../packages/platform/src/kernel/search/index.ts';
import type { Database } from '../../packages/platform/src/kernel/storage/index.ts';
import { insertRecord, type RecordFilter } from '../../packages/platform/src/services/memory/record-store.ts';
import { recordTable } from '../../packages/platform/src/services/memory/record-table.ts';
import type { Conversation } from './dataset.ts';

/** How well one way to search finds what answers rest on. */
export interface Recall {
  way: string;
  /** Mean share of a question's evidence among the first k, for each k. */
  recallAt: Record<number, number>;
  /** Of one search without the embedding of its query, in milliseconds. */
  medianMs: number;
}

const MEMORY = 'quality';
const POOL = 50;

/** Keeps every turn as a record of its own, in a namespace for its conversation. */
export async function keepTurns(database: Database, conversations: readonly Conversation[]): Promise<number> {
  let count = 0;
  for (const [index, { sessions }] of conversations.entries())
    for (const { id, speaker, text, at } of sessions.flat()) {
      count += 1;
      await insertRecord(database, {
        id: recordId(index, id),
        memoryId: MEMORY,
        strategyId: 'none',
        namespace: `/${index}`,
        content: `${speaker}: ${text}`.replaceAll('\u0000', '').slice(0, 16_000),
        metadata: {},
        at,
        insertedAt: at,
        eventIds: [],
      });
    }
  return count;
}

/** Asks every question that has evidence in each way: by words, by meaning, by both. No model answers or judges. */
export async function measureRecall(
  database: Database,
  vectors: VectorIndex<RecordFilter> | undefined,
  conversations: readonly Conversation[],
  ks: readonly number[],
): Promise<Recall[]> {
  const words = (filter: RecordFilter, query: string) => lexicalSearch(database, recordTable, filter, query, POOL);
  const ways: [string, (filter: RecordFilter, query: string, vector: string) => Promise<Hit[]>][] = [
    ['lexical', words],
  ];
  if (vectors) {
    ways.push(['vector', (filter, _query, vector) => vectors.search(filter, vector, POOL)]);
    ways.push([
      'hybrid',
      async (filter, query, vector) => {
        const [byWords, near] = await Promise.all([words(filter, query), vectors.search(filter, vector, POOL)]);
        return fuse(
          byWords,
          near,
          await vectors.cosines(
            byWords.map(({ id }) => id),
            vector,
          ),
        );
      },
    ]);
  }
  const tallies = ways.map(([way, search]) => ({
    way,
    search,
    sums: new Map<number, number>(),
    times: [] as number[],
  }));
  let questions = 0;
  for (const [index, conversation] of conversations.entries())
    for (const { question, evidence } of conversation.questions) {
      if (evidence.length === 0) continue;
      questions += 1;
      const scope = { kind: 'exact', key: `/${index}` } as const;
      const filter: RecordFilter = {
        memoryId: MEMORY,
        now: new Date(),
        scope,
        strategyId: undefined,
        metadata: [],
        metadataField: '',
      };
      const vector = vectors ? await vectors.embed(question) : '';
      for (const { search, sums, times } of tallies) {
        const started = performance.now();
        const ids = (await search(filter, question, vector)).map(({ id }) => id);
        times.push(performance.now() - started);
        for (const k of ks) {
          const first = new Set(ids.slice(0, k));
          const share = evidence.filter((each) => first.has(recordId(index, each))).length / evidence.length;
          sums.set(k, (sums.get(k) ?? 0) + share);
        }
      }
    }
  return tallies.map(({ way, sums, times }) => ({
    way,
    recallAt: Object.fromEntries(ks.map((k) => [k, (sums.get(k) ?? 0) / Math.max(1, questions)])),
    medianMs: times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0,
  }));
}

function recordId(conversation: number, turn: string): string {
  return `${conversation} ${turn}`;
}
