import type { Executor } from '../../../kernel/storage/index.ts';
import { namespaceKey } from '../namespaces.ts';
import { contentHash } from '../record.ts';
import { holdsSql, insertRecord, type NewRecord } from '../record-store.ts';

/** What a batch does to the long-term records. */
export type Change =
  | { kind: 'insert'; record: NewRecord; supersedes: string[] }
  /** Said again: the record also comes from these events. */
  | { kind: 'confirm'; id: string; eventIds: string[] };

/** Another batch was faster with a record that this one would replace; the batch is done again. */
export class OvertakenError extends Error {
  override name = 'OvertakenError';
}

/** Carries out changes within a transaction. Throws `OvertakenError` when a record to be replaced holds no longer. */
export async function applyChanges(tx: Executor, changes: readonly Change[], now: Date): Promise<void> {
  const places = new Set(changes.flatMap((change) => (change.kind === 'insert' ? [placeOf(change.record)] : [])));
  // Batches of two sessions may write into one namespace: one after the other, in an order that cannot deadlock.
  for (const place of [...places].sort())
    await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 41))', [place]);
  /** Records that were not written because one that says the same is there: later changes mean that one. */
  const known = new Map<string, string>();
  const meant = (id: string): string => known.get(id) ?? id;
  for (const change of changes) {
    if (change.kind === 'confirm') await confirm(tx, meant(change.id), change.eventIds);
    else {
      const { id } = change.record;
      known.set(id, await insert(tx, change.record, change.supersedes.map(meant), now));
    }
  }
}

function placeOf({ memoryId, strategyId, namespace }: NewRecord): string {
  return `${memoryId} ${strategyId} ${namespaceKey(namespace)}`;
}

/** The id under which it stands: its own, or that of the record that says the same already. */
async function insert(tx: Executor, record: NewRecord, supersedes: readonly string[], now: Date): Promise<string> {
  const params: unknown[] = [
    record.memoryId,
    record.strategyId,
    namespaceKey(record.namespace),
    contentHash(record.content),
  ];
  const [same] = await tx.query<{ id: string }>(
    `SELECT id FROM memory_records WHERE memory_id = $1 AND strategy_id = $2 AND namespace_key = $3 AND content_hash = $4
       AND ${holdsSql(now, params)} LIMIT 1`,
    params,
  );
  if (same) {
    await confirm(tx, same.id, record.eventIds);
    return same.id;
  }
  for (const id of supersedes) {
    const closed = await tx.execute(
      'UPDATE memory_records SET valid_to = $2, superseded_by = $3 WHERE id = $1 AND valid_to IS NULL',
      [id, now, record.id],
    );
    if (closed === 0) throw new OvertakenError(`the record ${id} was replaced or deleted meanwhile`);
  }
  await insertRecord(tx, record);
  return record.id;
}

async function confirm(tx: Executor, id: string, eventIds: readonly string[]): Promise<void> {
  // Of nothing there is no aggregate: the column would become NULL.
  if (eventIds.length === 0) return;
  await tx.execute(
    `UPDATE memory_records SET event_ids = (
       SELECT jsonb_agg(DISTINCT e) FROM jsonb_array_elements(event_ids || $2::jsonb) e) WHERE id = $1`,
    [id, JSON.stringify(eventIds)],
  );
}
