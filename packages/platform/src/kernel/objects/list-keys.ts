import { ObjectError } from './errors.ts';
import { type FoundKey, type Seek, type WalkCache, walkKeys } from './key-walk.ts';
import type { ListObjectsOptions } from './object-store.ts';

export type Listed = { kind: 'key'; found: FoundKey } | { kind: 'prefix'; prefix: Buffer };

export interface ListedPage {
  items: Listed[];
  next?: string;
}

/** One page of keys and common prefixes below `root`. Throws `InvalidArgument` for an invalid token. */
export async function listKeys(root: string, options: ListObjectsOptions): Promise<ListedPage> {
  const prefix = Buffer.from(options.prefix ?? '');
  const delimiter = Buffer.from(options.delimiter ?? '');
  const start = options.token === undefined ? { after: options.startAfter } : parseToken(options.token);
  let seek: Seek = {
    prefix,
    ...(start.after !== undefined && { after: Buffer.from(start.after) }),
    ...(start.past !== undefined && { past: Buffer.from(start.past) }),
  };
  const items: Listed[] = [];
  const cache: WalkCache = new Map();
  // One more than asked for tells whether there is another page.
  while (items.length <= options.limit) {
    const item = await nextItem(root, seek, delimiter, cache, items, options.limit);
    if (!item) break;
    items.push(item);
    seek = { prefix, past: item.prefix };
  }
  if (items.length <= options.limit || options.limit === 0) return { items: items.slice(0, options.limit) };
  items.pop();
  const last = items.at(-1);
  return last ? { items, next: formatToken(last) } : { items };
}

/** Adds keys to `items` until the limit is passed, and ends early with the first common prefix. */
async function nextItem(
  root: string,
  seek: Seek,
  delimiter: Buffer,
  cache: WalkCache,
  items: Listed[],
  limit: number,
): Promise<{ kind: 'prefix'; prefix: Buffer } | undefined> {
  for await (const found of walkKeys(root, seek, cache)) {
    const at = delimiter.length > 0 ? found.key.indexOf(delimiter, seek.prefix.length) : -1;
    if (at >= 0) {
      const prefix = found.key.subarray(0, at + delimiter.length);
      // A page may begin inside a common prefix only when the caller chose to start there; S3 shows it then, too.
      return { kind: 'prefix', prefix };
    }
    items.push({ kind: 'key', found });
    if (items.length > limit) return undefined;
  }
  return undefined;
}

interface Token {
  after?: string;
  past?: string;
}

function formatToken(last: Listed): string {
  const token: Token = last.kind === 'key' ? { after: last.found.key.toString() } : { past: last.prefix.toString() };
  return Buffer.from(JSON.stringify(token)).toString('base64url');
}

/** Not signed: a made-up token reaches nothing that a made-up `start-after` would not. */
export function parseToken(text: string): Token {
  try {
    const token: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    if (typeof token === 'object' && token !== null) {
      if ('after' in token && typeof token.after === 'string') return { after: token.after };
      if ('past' in token && typeof token.past === 'string') return { past: token.past };
    }
  } catch {
    // Said below.
  }
  throw new ObjectError('InvalidArgument', 'The continuation token provided is incorrect.');
}
