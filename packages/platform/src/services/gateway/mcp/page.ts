import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import type { Offered } from '../gateway-tools.ts';

const PAGE_SIZE = 1_000;
/** Of a page as JSON, beyond which it takes no more: clients and proxies bound what they read. */
const PAGE_BYTES = 4 * 1024 * 1024;
/** The longest URI, as base64. */
const LONGEST_CURSOR = 4_096;

export interface Page<One> {
  items: readonly One[];
  nextCursor?: string;
}

/**
 * A page of a sorted list. The cursor is the last item of the page before. So pages do not overlap or leave out items if targets change in between.
 * Throws InvalidParams if `cursor` is not a cursor.
 */
export function pageOf<One extends Offered>(all: readonly One[], cursor: string | undefined, whole = false): Page<One> {
  const from = cursor === undefined ? 0 : firstAfter(all, listedIn(cursor));
  const items = all.slice(from, whole ? undefined : endOf(all, from));
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

/** Where a page ends that begins there: it has one at least. */
function endOf(all: readonly Offered[], from: number): number {
  let bytes = 0;
  for (let end = from; end < Math.min(all.length, from + PAGE_SIZE); end++) {
    bytes += bytesOf(all[end]);
    if (bytes > PAGE_BYTES && end > from) return end;
  }
  return from + PAGE_SIZE;
}

/** Counted once for each, however often it is listed. */
const counted = new WeakMap<Offered, number>();

/** As JSON, with what its target is left out: that is listed nowhere. */
function bytesOf(one: Offered | undefined): number {
  if (!one) return 0;
  let bytes = counted.get(one);
  if (bytes === undefined) {
    const { target: _, ...listed } = one;
    bytes = Buffer.byteLength(JSON.stringify(listed));
    counted.set(one, bytes);
  }
  return bytes;
}
