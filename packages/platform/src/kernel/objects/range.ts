import { ObjectError } from './errors.ts';
import type { RangeRequest } from './object-store.ts';

/** Reads a `Range` header (RFC 9110, 14.1.2). Undefined for what S3 ignores: other units, several ranges, nonsense. */
export function parseRange(header: string | undefined): RangeRequest | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '');
  if (!match) return undefined;
  const [, first = '', last = ''] = match;
  if (first === '') return last === '' ? undefined : { suffix: Number(last) };
  if (last === '') return { first: Number(first) };
  return Number(first) > Number(last) ? undefined : { first: Number(first), last: Number(last) };
}

/** The bytes asked for, of an object of `size` bytes; throws `InvalidRange` when there are none. */
export function resolveRange(request: RangeRequest, size: number): { first: number; last: number } {
  const first = 'suffix' in request ? Math.max(0, size - request.suffix) : request.first;
  const last = 'suffix' in request ? size - 1 : Math.min(request.last ?? size - 1, size - 1);
  if (first >= size || last < first) throw new ObjectError('InvalidRange', 'The requested range is not satisfiable');
  return { first, last };
}
