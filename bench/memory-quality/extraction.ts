import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { Database } from '../../packages/platform/src/kernel/storage/index.ts';
import type { Batch, Extractor } from '../../packages/platform/src/services/memory/extraction/candidate.ts';
import { applyChanges } from '../../packages/platform/src/services/memory/extraction/changes.ts';
import { extractBatch } from '../../packages/platform/src/services/memory/extraction/extract.ts';
import { listRecords } from '../../packages/platform/src/services/memory/record-store.ts';
import { Retrieval } from '../../packages/platform/src/services/memory/retrieval.ts';
import type { Labelled } from './labelled.ts';

/** What became of one conversation. */
export interface Judged {
  title: string;
  records: string[];
  /** Facts that no record holds. */
  missed: string[][];
  /** Records that hold no fact: said and not worth keeping, or no longer so. */
  junk: string[];
  stale: string[];
  facts: number;
  corrections: number;
  /** Of the corrections, those whose old statement stands no more. */
  corrected: number;
}

export interface ExtractionFigures {
  conversations: number;
  facts: number;
  records: number;
  found: number;
  junk: number;
  stale: number;
  corrections: number;
  corrected: number;
}

const DAY_MS = 86_400_000;
const FIRST = Date.UTC(2026, 0, 5, 9);

/** Extracts facts session by session, as jobs do, and holds what stands at the end against the labels. */
export async function judgeExtraction(
  database: Database,
  log: Logger,
  extractor: Extractor,
  { title, sessions, facts, stale, allowed }: Labelled,
): Promise<Judged> {
  const memoryId = `extraction-${randomUUID()}`;
  const strategy = {
    id: memoryId,
    name: 'facts',
    type: 'SEMANTIC',
    template: '/facts',
    createdAt: 0,
    updatedAt: 0,
  } as const;
  let now = new Date(FIRST);
  const retrieval = new Retrieval({ database, clock: { now: () => now.getTime() }, log });
  const deps = {
    executor: database,
    newRecordId: () => `mem-${randomUUID()}`,
    now: () => now,
    nearest: retrieval.nearest.bind(retrieval),
  };
  for (const [day, session] of sessions.entries()) {
    now = new Date(FIRST + day * DAY_MS);
    const messages = session.map(({ role, text }, index) => ({
      ...{ role, text, index: 0, eventId: `${day}-${index}#a` },
      at: new Date(now.getTime() + index * 60_000),
    }));
    const values = { actorId: 'user', sessionId: `${day}`, memoryStrategyId: strategy.id, variables: {} };
    const memory = { id: memoryId, data: { strategies: [strategy] } } as unknown as Batch['memory'];
    const batch: Batch = { memory, strategy, kind: 'semantic', values, messages };
    const { changes } = await extractBatch(batch, extractor, deps, new AbortController().signal);
    await database.transaction((tx) => applyChanges(tx, changes, now));
  }
  const filter = {
    memoryId,
    now,
    scope: { kind: 'all' },
    strategyId: undefined,
    metadata: [],
    metadataField: '',
  } as const;
  const records = (await listRecords(database, filter, 1000, undefined)).map(({ content }) => content);
  const isFact = (record: string): boolean => facts.some((words) => holds(record, words));
  const rest = records.filter((record) => !isFact(record));
  const isStale = (record: string): boolean => stale.some((words) => holds(record, words));
  return {
    title,
    records,
    missed: facts.filter((words) => !records.some((record) => holds(record, words))),
    junk: rest.filter((record) => !isStale(record) && !allowed.some((words) => holds(record, words))),
    stale: rest.filter(isStale),
    facts: facts.length,
    corrections: stale.length,
    corrected: stale.filter((words) => !rest.some((record) => holds(record, words))).length,
  };
}

export function figuresOf(judged: readonly Judged[]): ExtractionFigures {
  const sum = (of: (one: Judged) => number): number => judged.reduce((total, one) => total + of(one), 0);
  return {
    conversations: judged.length,
    facts: sum(({ facts }) => facts),
    records: sum(({ records }) => records.length),
    found: sum(({ facts, missed }) => facts - missed.length),
    junk: sum(({ junk }) => junk.length),
    stale: sum(({ stale }) => stale.length),
    corrections: sum(({ corrections }) => corrections),
    corrected: sum(({ corrected }) => corrected),
  };
}

function holds(record: string, words: readonly string[]): boolean {
  return words.every((word) => record.toLowerCase().includes(word.toLowerCase()));
}
