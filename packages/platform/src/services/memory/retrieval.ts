import type { data } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import type { Reranker } from '../../kernel/models/index.ts';
import type { Database } from '../../kernel/storage/index.ts';
import type { Place } from './extraction/extract.ts';
import { type Hit, lexicalSearch } from './lexical-search.ts';
import { namespaceKey, namespaceScope } from './namespaces.ts';
import type { StoredRecord } from './record.ts';
import { type RecordFilter, recordsOf } from './record-store.ts';
import type { VectorIndex } from './vector-index.ts';

export interface RetrievalDeps {
  database: Database;
  clock: Pick<Clock, 'now'>;
  log: Logger;
  /** As long as there is none, search is by words alone. */
  vectors?: { readonly current: VectorIndex | undefined };
  /** Absent: nothing is ranked a second time. */
  reranker?: Reranker;
}

/** Hits of each kind that are fused: more than are given back, since the best of both need not be the best of one. */
const POOL = 50;
/** What nearness of meaning weighs beside shared words. */
const VECTOR_WEIGHT = 0.7;
const EMBED_TIMEOUT_MS = 5_000;
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

  constructor(deps: RetrievalDeps) {
    this.#deps = deps;
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
    const hits = await this.#rank(filter, searchQuery, reranker ? Math.max(topK, RERANKED) : topK);
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
    const hits = await this.#rank(filter, text, limit);
    const records = await recordsOf(
      this.#deps.database,
      hits.map(({ id }) => id),
    );
    return hits.flatMap(({ id }) => records.get(id) ?? []);
  }

  async #rank(filter: RecordFilter, query: string, topK: number): Promise<Hit[]> {
    const { database, log } = this.#deps;
    const vectors = this.#deps.vectors?.current;
    const pool = Math.max(POOL, topK * 2);
    const words = lexicalSearch(database, filter, query, pool);
    if (!vectors) return (await words).slice(0, topK);
    const [byWords, near] = await Promise.all([
      words,
      this.#near(vectors, filter, query, pool).catch((error: unknown) => {
        log.warn({ err: error }, 'the embedding model failed; this search is by words alone');
        return undefined;
      }),
    ]);
    if (!near) return byWords.slice(0, topK);
    const missing = byWords.map(({ id }) => id).filter((id) => !near.hits.some((hit) => hit.id === id));
    const cosines = missing.length === 0 ? new Map<string, number>() : await vectors.cosines(missing, near.vector);
    return fuse(byWords, near.hits, cosines).slice(0, topK);
  }

  async #near(
    vectors: VectorIndex,
    filter: RecordFilter,
    query: string,
    limit: number,
  ): Promise<{ vector: string; hits: Hit[] }> {
    const vector = await vectors.embed(query, AbortSignal.timeout(EMBED_TIMEOUT_MS));
    return { vector, hits: await vectors.search(filter, vector, limit) };
  }
}

/** Scores from 0 to 1: as they are when they are that, otherwise taken for logits. */
function asShares(scores: readonly number[]): number[] {
  const shares = scores.every((score) => score >= 0 && score <= 1);
  return shares ? [...scores] : scores.map((score) => 1 / (1 + Math.exp(-score)));
}

/**
 * One ranking of two: the weighted sum of cosine and share of words, both from 0 to 1, so that a score means the same in
 * every search. `cosines`: of records that only the words found.
 */
export function fuse(byWords: readonly Hit[], near: readonly Hit[], cosines: ReadonlyMap<string, number>): Hit[] {
  const words = new Map(byWords.map(({ id, score }) => [id, score]));
  const meaning = new Map([...cosines, ...near.map(({ id, score }): [string, number] => [id, score])]);
  const ids = new Set([...meaning.keys(), ...words.keys()]);
  return [...ids]
    .map((id) => ({
      id,
      score: VECTOR_WEIGHT * Math.max(0, meaning.get(id) ?? 0) + (1 - VECTOR_WEIGHT) * (words.get(id) ?? 0),
    }))
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
}
