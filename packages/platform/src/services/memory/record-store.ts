import type { data } from '@agentplatform/contract';
import { languageOf } from '../../kernel/search/index.ts';
import type { Executor } from '../../kernel/storage/index.ts';
import { metadataFilterSql } from './metadata-filter.ts';
import { type NamespaceScope, namespaceKey, scopeSql } from './namespaces.ts';
import { contentHash, metadataFromJson, metadataToJson, type StoredRecord, storedEventIds } from './record.ts';
import { expiryFrom } from './record-expiry.ts';

interface Row {
  id: string;
  memory_id: string;
  strategy_id: string;
  namespace: string;
  content: string;
  metadata: unknown;
  at: Date;
  valid_to: Date | null;
  superseded_by: string | null;
  event_ids: unknown;
  expiry_days: number | null;
  expires_at: Date | null;
}

export const RECORD_COLUMNS =
  'id, memory_id, strategy_id, namespace, content, metadata, at, valid_to, superseded_by, event_ids, expiry_days, expires_at';

/** Which records a list or a search is about. */
export interface RecordFilter {
  memoryId: string;
  /** What has expired by then is not there. */
  now: Date;
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

/** The SQL condition for valid records: no newer record replaces them, and they have not expired. Appends its parameter to `params`. */
export function holdsSql(now: Date, params: unknown[], prefix = ''): string {
  return `${prefix}valid_to IS NULL AND ${unexpiredSql(now, params, prefix)}`;
}

function unexpiredSql(now: Date, params: unknown[], prefix = ''): string {
  return `(${prefix}expires_at IS NULL OR ${prefix}expires_at > $${params.push(now)})`;
}

/** The filter as SQL on `memory_records`; appends its parameters. `prefix` is the table's alias and a dot. */
export function recordFilterSql(filter: RecordFilter, params: unknown[], prefix = ''): string {
  const conditions = [
    `${prefix}memory_id = $${params.push(filter.memoryId)}`,
    holdsSql(filter.now, params, prefix),
    scopeSql(filter.scope, params, `${prefix}namespace_key`),
  ];
  if (filter.strategyId !== undefined) conditions.push(`${prefix}strategy_id = $${params.push(filter.strategyId)}`);
  conditions.push(...metadataFilterSql(filter.metadata, params, filter.metadataField));
  return conditions.join(' AND ');
}

/** The columns of a new record in the order of `valuesOf`, with their types. */
const NEW_COLUMNS = {
  ...{ id: 'text', memory_id: 'text', strategy_id: 'text', namespace: 'text', namespace_key: 'text', content: 'text' },
  ...{ content_hash: 'text', metadata: 'jsonb', at: 'timestamptz', inserted_at: 'timestamptz', event_ids: 'jsonb' },
  ...{ actor_id: 'text', session_id: 'text', expiry_days: 'integer', expires_at: 'timestamptz' },
  language: 'regconfig',
};

/** JSON has no halves of characters in PostgreSQL; as text of its own the database would get U+FFFD for them, too. */
function valuesOf(record: NewRecord): unknown[] {
  const namespace = record.namespace.toWellFormed();
  return [
    ...[record.id, record.memoryId, record.strategyId, namespace, namespaceKey(namespace)],
    ...[
      record.content.toWellFormed(),
      contentHash(record.content),
      metadataToJson(record.metadata),
      record.at,
      record.insertedAt,
    ],
    ...[record.eventIds, record.actorId ?? null, record.sessionId ?? null],
    ...[record.expiry?.days ?? null, record.expiry?.at ?? null, languageOf(record.content)],
  ];
}

export const insertRecord = (executor: Executor, record: NewRecord): Promise<void> => insertRecords(executor, [record]);

/** In one statement: each one by itself would wait for whatever else the database does meanwhile. */
export async function insertRecords(executor: Executor, records: readonly NewRecord[]): Promise<void> {
  if (records.length === 0) return;
  const names = Object.keys(NEW_COLUMNS);
  const rows = records.map((record) => {
    const values = valuesOf(record);
    return Object.fromEntries(names.map((name, index) => [name, values[index]]));
  });
  await executor.execute(
    `INSERT INTO memory_records (${names.join(', ')})
     SELECT * FROM json_to_recordset($1::json) AS x(${Object.entries(NEW_COLUMNS)
       .map((column) => column.join(' '))
       .join(', ')})`,
    [JSON.stringify(rows)],
  );
}

/** By id, also one that a newer record has taken the place of; not one that has expired. */
export async function findRecord(
  executor: Executor,
  memoryId: string,
  id: string,
  now: Date,
): Promise<StoredRecord | undefined> {
  const params: unknown[] = [memoryId, id];
  const [row] = await executor.query<Row>(
    `SELECT ${RECORD_COLUMNS} FROM memory_records WHERE memory_id = $1 AND id = $2 AND ${unexpiredSql(now, params)}`,
    params,
  );
  return row && recordOf(row);
}

export interface RecordChange {
  content?: string;
  namespace?: string;
  strategyId?: string;
  metadata?: Record<string, data.MemoryRecordMetadataValue>;
  /** Days from now on, or never. If absent, the last number of days starts anew. */
  expiry?: number | 'never';
  at: Date;
}

export async function updateRecord(
  executor: Executor,
  memoryId: string,
  id: string,
  change: RecordChange,
  now: Date,
): Promise<boolean> {
  const params: unknown[] = [memoryId, id, change.at];
  const sets = ['at = $3'];
  const set = (column: string, value: unknown): void => {
    sets.push(`${column} = $${params.push(value)}`);
  };
  if (change.content !== undefined) {
    set('content', change.content);
    set('content_hash', contentHash(change.content));
    sets.push(`language = $${params.push(languageOf(change.content))}::regconfig`);
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
  if (change.expiry === undefined)
    sets.push(`expires_at = $${params.push(now)}::timestamptz + make_interval(hours => 24 * expiry_days)`);
  else {
    const expiry = change.expiry === 'never' ? undefined : expiryFrom(now, change.expiry);
    set('expiry_days', expiry?.days ?? null);
    set('expires_at', expiry?.at ?? null);
  }
  const changed = await executor.execute(
    `UPDATE memory_records SET ${sets.join(', ')} WHERE memory_id = $1 AND id = $2 AND ${holdsSql(now, params)}`,
    params,
  );
  return changed === 1;
}

/** False when there is none, or none any more. */
export async function deleteRecord(executor: Executor, memoryId: string, id: string, now: Date): Promise<boolean> {
  const params: unknown[] = [memoryId, id];
  const where = `memory_id = $1 AND id = $2 AND ${unexpiredSql(now, params)}`;
  return (await executor.execute(`DELETE FROM memory_records WHERE ${where}`, params)) === 1;
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
    expiry:
      row.expiry_days === null || row.expires_at === null ? undefined : { days: row.expiry_days, at: row.expires_at },
    eventIds: storedEventIds(row.event_ids, 'event_ids'),
  };
}
