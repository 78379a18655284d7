import { createHmac, timingSafeEqual } from 'node:crypto';
import { canonicalJson } from './canonical-json.ts';
import { errors } from './errors.ts';
import type { DocumentValue } from './wire-types.ts';

/** What a token is good for: it is refused in another operation, for another account, or under another filter. */
export interface PageScope {
  /** An operation of the contract, or the action that a route of the platform's own asks the right to. */
  operation: string;
  accountId: string;
  /** The part of the input that decides what is listed, e.g. `{ memoryId, actorId }`; not maxResults. */
  filter?: DocumentValue | undefined;
}

/** The part of the input of an operation that lists. */
export interface ListInput {
  maxResults?: number | undefined;
  nextToken?: string | undefined;
}

/** The page that is asked for. */
export interface WantedPage<Cursor = DocumentValue> {
  /** Items at most. */
  limit: number;
  /** Where to go on; undefined for the first page. */
  after: Cursor | undefined;
}

export interface Paginator {
  /** A token that a client hands back to go on after `cursor`. */
  encode(scope: PageScope, cursor: DocumentValue): string;
  /** The cursor inside a token; throws a ValidationException when the token is not one of ours for this scope. */
  decode(scope: PageScope, token: string): DocumentValue;
  /**
   * What the input of an operation that lists asks for, `size` items where it names no number; `token` is that of the page after this one,
   * and of no page undefined. Throws as `decode`.
   */
  wanted(
    scope: PageScope,
    input: ListInput,
    size: number,
  ): WantedPage & { token(next: DocumentValue | undefined): string | undefined };
  /** One page of what `list` lists by cursors that are texts, with the token of the next one. Rejects as `decode` throws and as `list` does. */
  page<Item>(
    scope: PageScope,
    input: ListInput & { size: number },
    list: (page: WantedPage<string>) => Promise<{ items: Item[]; next?: string | undefined }>,
  ): Promise<{ items: Item[]; nextToken: string | undefined }>;
}

const tagBytes = 16;
/** Longer than any token made here; the model's own limits lie between 1,024 and 2,048 characters or more. */
const maxToken = 8192;

/** Makes and reads page tokens, each sealed with an HMAC over cursor and scope. `key`: at least 32 secret bytes, kept over restarts. */
export function createPaginator(key: Uint8Array): Paginator {
  if (key.byteLength < 32) throw new RangeError('The key of page tokens needs at least 32 bytes');

  function seal(scope: PageScope, cursor: Uint8Array): Buffer {
    const context = canonicalJson([scope.operation, scope.accountId, scope.filter ?? null]);
    return createHmac('sha256', key)
      .update(`${Buffer.byteLength(context)}:${context}`)
      .update(cursor)
      .digest()
      .subarray(0, tagBytes);
  }

  const paginator: Paginator = {
    encode(scope, cursor) {
      const text = Buffer.from(JSON.stringify(cursor));
      return Buffer.concat([seal(scope, text), text]).toString('base64url');
    },
    decode(scope, token) {
      const bytes = Buffer.from(token.length <= maxToken ? token : '', 'base64url');
      const cursor = bytes.subarray(tagBytes);
      const genuine =
        bytes.length > tagBytes &&
        bytes.toString('base64url') === token &&
        timingSafeEqual(bytes.subarray(0, tagBytes), seal(scope, cursor));
      if (!genuine)
        throw errors.invalidField('nextToken', 'is not a token that this operation gave for these parameters');
      return JSON.parse(cursor.toString('utf8'));
    },
    wanted(scope, { maxResults: limit, nextToken }, size) {
      return {
        limit: limit ?? size,
        after: nextToken === undefined ? undefined : paginator.decode(scope, nextToken),
        token: (next) => (next === undefined ? undefined : paginator.encode(scope, next)),
      };
    },
    async page(scope, input, list) {
      const { limit, after, token } = paginator.wanted(scope, input, input.size);
      const { items, next } = await list({ limit, after: after === undefined ? undefined : String(after) });
      return { items, nextToken: token(next) };
    },
  };
  return paginator;
}
