import type { data } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import type { Reranker } from '../../kernel/models/index.ts';
import { HybridSearch, type HybridSearchDeps, lexicalSearch } from '../../kernel/search/index.ts';
import type { Database } from '../../kernel/storage/index.ts';
import type { Place } from './extraction/extract.ts';
import { namespaceKey, namespaceScope } from './namespaces.ts';
import type { StoredRecord } from './record.ts';
import { type RecordFilter, recordsOf } from './record-store.ts';
import { recordTable } from './record-table.ts';

export interface RetrievalDeps {
  database: Database;
  clock: Pick<Clock, 'now'>;
  log: Logger;
  /** As long as there is none, search is by words alone. */
  vectors?: HybridSearchDeps<RecordFilter, string>['vectors'];
  /** Absent: nothing is ranked a second time. */
  reranker?: Reranker;
}

/** Hits that a rerank model judges at most, and how long it may take. */
const RERANKED = 50;
const RERANK_TIMEOUT_MS = 5_000;

export interface Found {
  record: StoredRecord;
  score: number;
}

/** How many a caller gets who says nothing. */
const TOP_K = 10;

/** Search in long-term records. It gives text back; what becomes of it is the caller's decision. */
export class Retrieval {
  readonly #deps: RetrievalDeps;
  readonly #hybrid: HybridSearch<RecordFilter, string>;

  constructor(deps: RetrievalDeps) {
    this.#deps = deps;
    const { database, log, vectors } = deps;
    this.#hybrid = new HybridSearch({
      words: (filter, query, limit) => lexicalSearch(database, recordTable, filter, query, limit),
      log,
      ...(vectors && { vectors }),
    });
  }

  /** The best records for the query, best first, at most `topK`. */
  async search(memoryId: string, input: data.RetrieveMemoryRecordsInput): Promise<Found[]> {
    const { searchQuery, topK = TOP_K, memoryStrategyId, metadataFilters = [] } = input.searchCriteria;
    const filter: RecordFilter = {
      memoryId,
      now: new Date(this.#deps.clock.now()),
      scope: namespaceScope(input),
      strategyId: memoryStrategyId,
      metadata: metadataFilters,
      metadataField: 'searchCriteria.metadataFilters',
    };
    const { database, reranker } = this.#deps;
    const hits = await this.#hybrid.search(filter, searchQuery, reranker ? Math.max(topK, RERANKED) : topK);
    const records = await recordsOf(
      database,
      hits.map(({ id }) => id),
    );
    const found = hits.flatMap(({ id, score }) => {
      const record = records.get(id);
      return record ? [{ record, score }] : [];
    });
    return reranker ? (await this.#reranked(reranker, searchQuery, found)).slice(0, topK) : found;
  }

  /** In the order of the rerank model, which judges the first; those behind keep theirs. Without an answer nothing moves. */
  async #reranked(reranker: Reranker, query: string, found: readonly Found[]): Promise<readonly Found[]> {
    if (found.length < 2) return found;
    const judged = found.slice(0, RERANKED);
    try {
      const signal = AbortSignal.timeout(RERANK_TIMEOUT_MS);
      const texts = judged.map(({ record }) => record.content);
      const scores = await reranker.score(query, texts, signal);
      const shares = asShares(scores);
      const order = judged
        .map(({ record }, index): Found => ({ record, score: shares[index] ?? 0 }))
        .sort((a, b) => b.score - a.score);
      const least = order.at(-1)?.score ?? 0;
      const behind = found.slice(RERANKED).map(({ record, score }) => ({ record, score: Math.min(score, least) }));
      return [...order, ...behind];
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'the rerank model failed; this search keeps its own order');
      return found;
    }
  }

  /** Records that still hold in exactly this place and are nearest to a text, nearest first. */
  async nearest(place: Place, text: string, limit: number): Promise<StoredRecord[]> {
    const filter: RecordFilter = {
      memoryId: place.memoryId,
      now: new Date(this.#deps.clock.now()),
      scope: { kind: 'exact', key: namespaceKey(place.namespace) },
      strategyId: place.strategyId,
      metadata: [],
      metadataField: '',
    };
    const hits = await this.#hybrid.search(filter, text, limit);
    const records = await recordsOf(
      this.#deps.database,
      hits.map(({ id }) => id),
    );
    return hits.flatMap(({ id }) => records.get(id) ?? []);
  }
}

/** Scores from 0 to 1: as they are when they are that, otherwise taken for logits. */
function asShares(scores: readonly number[]): number[] {
  const shares = scores.every((score) => score >= 0 && score <= 1);
  return shares ? [...scores] : scores.map((score) => 1 / (1 + Math.exp(-score)));
}
