import { InvalidCursorError } from './resource-errors.ts';

/** The place in a list after the row numbered `seq`, as text. */
export function formatCursor(seq: number): string {
  return seq.toString(36);
}

/** The row number that `formatCursor` wrote; throws `InvalidCursorError` for any other text. */
export function parseCursor(cursor: string): number {
  const seq = /^[0-9a-z]{1,11}$/.test(cursor) ? Number.parseInt(cursor, 36) : Number.NaN;
  if (!Number.isSafeInteger(seq) || formatCursor(seq) !== cursor) throw new InvalidCursorError();
  return seq;
}
