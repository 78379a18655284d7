import type { data } from '@agentplatform/contract';
import type { Executor } from '../../kernel/storage/index.ts';
import { metadataFilterSql } from './metadata-filter.ts';
import { type NamespaceScope, namespaceKey, scopeSql } from './namespaces.ts';
import { contentHash, metadataFromJson, metadataToJson, type StoredRecord } from './record.ts';

interface Row {
  id: string;
  memory_id: string;
  strategy_id: string;
  namespace: string;
  content: string;
  metadata: Record<string, unknown>;
  at: Date;
  valid_to: Date | null;
  superseded_by: string | null;
  event_ids: string[];
}

export const RECORD_COLUMNS =
  'id, memory_id, strategy_id, namespace, content, metadata, at, valid_to, superseded_by, event_ids';

/** Which records a list or a search is about. */
export interface RecordFilter {
  memoryId: string;
  scope: NamespaceScope;
  strategyId: string | undefined;
  metadata: readonly data.MemoryMetadataFilterExpression[];
  /** The path of `metadata` in the request, for errors. */
  metadataField: string;
}

export interface NewRecord extends Omit<StoredRecord, 'validTo' | 'supersededBy'> {
  insertedAt: Date;
  actorId?: string;
  sessionId?: string;
}

/** The filter as SQL on `memory_records`; appends its parameters. `prefix` is the table's alias and a dot. */
export function recordFilterSql(filter: RecordFilter, params: unknown[], prefix = ''): string {
  const conditions = [
    `${prefix}memory_id = $${params.push(filter.memoryId)}`,
    `${prefix}valid_to IS NULL`,
    scopeSql(filter.scope, params, `${prefix}namespace_key`),
  ];
  if (filter.strategyId !== undefined) conditions.push(`${prefix}strategy_id = $${params.push(filter.strategyId)}`);
  conditions.push(...metadataFilterSql(filter.metadata, params, filter.metadataField));
  return conditions.join(' AND ');
}

export async function insertRecord(executor: Executor, record: NewRecord): Promise<void> {
  await executor.execute(
    `INSERT INTO memory_records (id, memory_id, strategy_id, namespace, namespace_key, content, content_hash, metadata, at,
       inserted_at, event_ids, actor_id, session_id)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10, $11::jsonb, $12, $13)`,
    [
      record.id,
      record.memoryId,
      record.strategyId,
      record.namespace,
      namespaceKey(record.namespace),
      record.content,
      contentHash(record.content),
      JSON.stringify(metadataToJson(record.metadata)),
      record.at,
      record.insertedAt,
      JSON.stringify(record.eventIds),
      record.actorId ?? null,
      record.sessionId ?? null,
    ],
  );
}

/** By id, also one that a newer record has taken the place of. */
export async function findRecord(executor: Executor, memoryId: string, id: string): Promise<StoredRecord | undefined> {
  const [row] = await executor.query<Row>(
    `SELECT ${RECORD_COLUMNS} FROM memory_records WHERE memory_id = $1 AND id = $2`,
    [memoryId, id],
  );
  return row && recordOf(row);
}

export interface RecordChange {
  content?: string;
  namespace?: string;
  strategyId?: string;
  metadata?: Record<string, data.MemoryRecordMetadataValue>;
  at: Date;
}

export async function updateRecord(
  executor: Executor,
  memoryId: string,
  id: string,
  change: RecordChange,
): Promise<boolean> {
  const params: unknown[] = [memoryId, id, change.at];
  const sets = ['at = $3'];
  const set = (column: string, value: unknown): void => {
    sets.push(`${column} = $${params.push(value)}`);
  };
  if (change.content !== undefined) {
    set('content', change.content);
    set('content_hash', contentHash(change.content));
  }
  if (change.namespace !== undefined) {
    set('namespace', change.namespace);
    set('namespace_key', namespaceKey(change.namespace));
  }
  if (change.strategyId !== undefined) set('strategy_id', change.strategyId);
  // A vector has the place of its record beside it.
  if (change.content !== undefined || change.namespace !== undefined || change.strategyId !== undefined)
    sets.push('needs_vector = true');
  if (change.metadata !== undefined) set('metadata', JSON.stringify(metadataToJson(change.metadata)));
  const changed = await executor.execute(
    `UPDATE memory_records SET ${sets.join(', ')} WHERE memory_id = $1 AND id = $2 AND valid_to IS NULL`,
    params,
  );
  return changed === 1;
}

export async function deleteRecord(executor: Executor, memoryId: string, id: string): Promise<boolean> {
  return (await executor.execute('DELETE FROM memory_records WHERE memory_id = $1 AND id = $2', [memoryId, id])) === 1;
}

/** In the order of ids, which are random: what exists from first page to last is seen exactly once. */
export async function listRecords(
  executor: Executor,
  filter: RecordFilter,
  limit: number,
  after: string | undefined,
): Promise<StoredRecord[]> {
  const params: unknown[] = [];
  const where = recordFilterSql(filter, params);
  const rest = after === undefined ? '' : `AND id > $${params.push(after)}`;
  const rows = await executor.query<Row>(
    `SELECT ${RECORD_COLUMNS} FROM memory_records WHERE ${where} ${rest} ORDER BY id LIMIT $${params.push(limit)}`,
    params,
  );
  return rows.map(recordOf);
}

/** Those of `ids` that still hold, by id. */
export async function recordsOf(executor: Executor, ids: readonly string[]): Promise<Map<string, StoredRecord>> {
  if (ids.length === 0) return new Map();
  const rows = await executor.query<Row>(
    `SELECT ${RECORD_COLUMNS} FROM memory_records WHERE valid_to IS NULL
       AND id IN (SELECT jsonb_array_elements_text($1::jsonb))`,
    [JSON.stringify(ids)],
  );
  return new Map(rows.map((row) => [row.id, recordOf(row)]));
}

export function recordOf(row: Row): StoredRecord {
  return {
    id: row.id,
    memoryId: row.memory_id,
    strategyId: row.strategy_id,
    namespace: row.namespace,
    content: row.content,
    metadata: metadataFromJson(row.metadata),
    at: row.at,
    validTo: row.valid_to ?? undefined,
    supersededBy: row.superseded_by ?? undefined,
    eventIds: row.event_ids,
  };
}
