import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import type { Offered } from '../gateway-tools.ts';

const PAGE_SIZE = 1_000;
/** The longest URI, as base64. */
const LONGEST_CURSOR = 4_096;

export interface Page<One> {
  items: readonly One[];
  nextCursor?: string;
}

/**
 * A page of a list that is in the order of what is listed. A cursor is what was last on the page before, so that pages hold together while targets
 * change. Throws InvalidParams for what is no cursor.
 */
export function pageOf<One extends Offered>(all: readonly One[], cursor: string | undefined, whole = false): Page<One> {
  const from = cursor === undefined ? 0 : firstAfter(all, listedIn(cursor));
  const items = all.slice(from, whole ? undefined : from + PAGE_SIZE);
  const last = items.at(-1);
  if (!last || from + items.length >= all.length) return { items };
  return { items, nextCursor: Buffer.from(last.listed).toString('base64url') };
}

function listedIn(cursor: string): string {
  const listed = Buffer.from(cursor, 'base64url').toString('utf8');
  if (cursor.length <= LONGEST_CURSOR && Buffer.from(listed).toString('base64url') === cursor) return listed;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'The cursor is none that this server has given.');
}

function firstAfter(all: readonly Offered[], listed: string): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((all[middle]?.listed ?? '') <= listed) low = middle + 1;
    else high = middle;
  }
  return low;
}
