import type { Executor } from '../storage/index.ts';

/** The last sequence number applied, creating the row at the first look; locked until `tx` ends. */
export async function lockPosition(tx: Executor, journalId: string): Promise<number> {
  await tx.query('INSERT INTO journal_positions VALUES ($1, 0) ON CONFLICT DO NOTHING', [journalId]);
  const [row] = await tx.query<{ applied_seq: number }>(
    'SELECT applied_seq FROM journal_positions WHERE journal_id = $1 FOR UPDATE',
    [journalId],
  );
  return row?.applied_seq ?? 0;
}

export async function storePosition(tx: Executor, journalId: string, seq: number): Promise<void> {
  await tx.query('UPDATE journal_positions SET applied_seq = $2 WHERE journal_id = $1', [journalId, seq]);
}
