import type { data } from '@agentplatform/contract';
import type { Database } from '../../kernel/storage/index.ts';
import type { Place } from './extraction/extract.ts';
import { type Hit, lexicalSearch } from './lexical-search.ts';
import { namespaceKey, namespaceScope } from './namespaces.ts';
import type { StoredRecord } from './record.ts';
import { type RecordFilter, recordsOf } from './record-store.ts';

export interface RetrievalDeps {
  database: Database;
}

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
      scope: namespaceScope(input),
      strategyId: memoryStrategyId,
      metadata: metadataFilters,
      metadataField: 'searchCriteria.metadataFilters',
    };
    const hits = await this.#rank(filter, searchQuery, topK);
    const records = await recordsOf(
      this.#deps.database,
      hits.map(({ id }) => id),
    );
    return hits.flatMap(({ id, score }) => {
      const record = records.get(id);
      return record ? [{ record, score }] : [];
    });
  }

  /** Records that still hold in exactly this place and are nearest to a text, nearest first. */
  async nearest(place: Place, text: string, limit: number): Promise<StoredRecord[]> {
    const filter: RecordFilter = {
      memoryId: place.memoryId,
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

  #rank(filter: RecordFilter, query: string, topK: number): Promise<Hit[]> {
    return lexicalSearch(this.#deps.database, filter, query, topK);
  }
}
