import type { SearchedTable } from '../../kernel/search/index.ts';
import { scopeSql } from './namespaces.ts';
import { type RecordFilter, recordFilterSql } from './record-store.ts';

/** The table of long-term records for the search. The table of vectors has the memory and the namespace, too. `recordFilterSql` decides whether a record is valid. */
export const recordTable: SearchedTable<RecordFilter> = {
  name: 'memory_records',
  columns: { text: 'content', hash: 'content_hash', order: 'inserted_at' },
  currentSql: (prefix) => `${prefix}valid_to IS NULL`,
  filterSql: recordFilterSql,
  vectors: {
    prefix: 'memory_vectors',
    list: 'memory_vector_models',
    place: { memory_id: 'text', strategy_id: 'text', namespace_key: 'text COLLATE "C"' },
    placeIndex: ['memory_id', 'namespace_key'],
    placeSql: ({ memoryId, scope }, params, prefix) =>
      `${prefix}memory_id = $${params.push(memoryId)} AND ${scopeSql(scope, params, `${prefix}namespace_key`)}`,
    placeName: ({ memoryId, scope }) => JSON.stringify([memoryId, scope]),
    isNarrow: ({ scope }) => scope.kind !== 'all',
  },
};
