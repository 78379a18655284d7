import { fuse, type Hit, lexicalSearch, type VectorIndex } from '../../packages/platform/src/kernel/search/index.ts';
import type { Database } from '../../packages/platform/src/kernel/storage/index.ts';
import { insertRecord, type RecordFilter } from '../../packages/platform/src/services/memory/record-store.ts';
import { recordTable } from '../../packages/platform/src/services/memory/record-table.ts';
import type { Conversation, Question, Said } from './dataset.ts';
import { meanInterval, meanOf } from './statistics.ts';

/** How well one way to search finds what answers rest on. */
export interface Recall {
  way: string;
  /** Share of a question's evidence among the first k, for each k, of all questions. */
  recallAt: Map<number, number[]>;
  /** 1 / rank of the first evidence of each question; 0 where there is none. */
  reciprocalRanks: number[];
}

/** Hits that are fused. */
export const POOL = 50;

/** Keeps every turn as a record of its own, in a namespace for its conversation. */
export async function keepTurns(
  database: Database,
  memoryId: string,
  conversations: readonly Conversation[],
): Promise<number> {
  let count = 0;
  for (const [index, { sessions }] of conversations.entries())
    for (const turn of sessions.flat()) {
      count += 1;
      const id = recordId(memoryId, index, turn.id);
      await insertRecord(database, {
        ...{ id, memoryId, strategyId: 'none', namespace: `/${index}`, metadata: {} },
        ...{ content: recordOf(turn), at: turn.at, insertedAt: turn.at, eventIds: [] },
      });
    }
  return count;
}

/** Asks every question that has evidence in each way: by words, by meaning, by both. No model answers or judges. */
export async function measureRecall(
  database: Database,
  vectors: VectorIndex<RecordFilter> | undefined,
  memoryId: string,
  conversations: readonly Conversation[],
  ks: readonly number[],
): Promise<Recall[]> {
  const words = (filter: RecordFilter, query: string) => lexicalSearch(database, recordTable, filter, query, POOL);
  const ways: [string, (filter: RecordFilter, query: string, vector: string) => Promise<Hit[]>][] = [['words', words]];
  if (vectors) {
    ways.push(['meaning', (filter, _query, vector) => vectors.search(filter, vector, POOL)]);
    ways.push([
      'both',
      async (filter, query, vector) => {
        const [byWords, near] = await Promise.all([words(filter, query), vectors.search(filter, vector, POOL)]);
        const ids = byWords.map(({ id }) => id);
        return fuse(byWords, near, await vectors.cosines(ids, vector));
      },
    ]);
  }
  const found = ways.map(([way, search]) => ({ search, ...tallied(way, ks) }));
  for (const [index, conversation] of conversations.entries())
    for (const { question, evidence } of askedOf(conversation)) {
      const filter: RecordFilter = {
        ...{ memoryId, now: new Date(), scope: { kind: 'exact', key: `/${index}` }, strategyId: undefined },
        ...{ metadata: [], metadataField: '' },
      };
      const vector = vectors ? await vectors.embed(question) : '';
      const wanted = evidence.map((each) => recordId(memoryId, index, each));
      for (const { search, add } of found)
        add(
          (await search(filter, question, vector)).map(({ id }) => id),
          wanted,
        );
    }
  return found.map(({ recall }) => recall);
}

/** The questions that rest on something. */
export function askedOf({ questions }: Conversation): Question[] {
  return questions.filter(({ evidence }) => evidence.length > 0);
}

/** What is kept of a turn. */
export function recordOf({ speaker, text }: Said): string {
  return (speaker === '' ? text : `${speaker}: ${text}`).replaceAll('\u0000', '').slice(0, 16_000);
}

/** An empty account of one way to search, and what adds to it the ids found for a question, best first, and those wanted. */
export function tallied(way: string, ks: readonly number[]) {
  const recall: Recall = { way, recallAt: new Map(ks.map((k): [number, number[]] => [k, []])), reciprocalRanks: [] };
  const add = (ids: readonly string[], wanted: readonly string[]): void => {
    const rank = ids.findIndex((id) => wanted.includes(id));
    recall.reciprocalRanks.push(rank < 0 ? 0 : 1 / (rank + 1));
    for (const [k, shares] of recall.recallAt) {
      const first = new Set(ids.slice(0, k));
      shares.push(wanted.filter((id) => first.has(id)).length / wanted.length);
    }
  };
  return { recall, add };
}

/** Means with half the width of their 95 % intervals. */
export function recallTable(found: readonly Recall[]): string {
  const shown = (values: readonly number[]): string =>
    `${meanOf(values).toFixed(3)} ± ${meanInterval(values).toFixed(3)}`;
  const ks = [...(found[0]?.recallAt.keys() ?? [])];
  return [
    `| search by | ${ks.map((k) => `recall@${k}`).join(' | ')} | MRR |`,
    `|---|${ks.map(() => '---|').join('')}---|`,
    ...found.map(({ way, recallAt, reciprocalRanks }) => {
      const shares = [...recallAt.values()].map(shown);
      return `| ${way} | ${shares.join(' | ')} | ${shown(reciprocalRanks)} |`;
    }),
  ].join('\n');
}

function recordId(memoryId: string, conversation: number, turn: string): string {
  return `${memoryId} ${conversation} ${turn}`;
}
