import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ServiceError } from './errors.ts';
import { createPaginator, type WantedPage } from './pagination.ts';
import type { DocumentValue } from './wire-types.ts';

const paginator = createPaginator(Buffer.alloc(32, 7));
const scope = { operation: 'ListEvents', accountId: '123456789012', filter: { memoryId: 'm', actorId: 'a' } } as const;

describe('a page', () => {
  const letters = ['a', 'b', 'c', 'd', 'e'];
  const list = async ({ limit, after }: WantedPage<string>) => {
    const from = after === undefined ? 0 : letters.indexOf(after) + 1;
    const items = letters.slice(from, from + limit);
    return { items, next: from + limit < letters.length ? items.at(-1) : undefined };
  };

  it('goes on where the one before has ended, with as many items as are asked for, or as usual', async () => {
    const first = await paginator.page(scope, { size: 3 }, list);
    expect(first.items).toEqual(['a', 'b', 'c']);
    const { nextToken } = first;
    expect(await paginator.page(scope, { size: 3, nextToken }, list)).toEqual({
      items: ['d', 'e'],
      nextToken: undefined,
    });
    expect((await paginator.page(scope, { size: 3, maxResults: 1, nextToken }, list)).items).toEqual(['d']);
    expect(await paginator.page(scope, { size: 3, maxResults: 5 }, list)).toEqual({
      items: letters,
      nextToken: undefined,
    });
  });

  it('begins with no token of another scope', async () => {
    const { nextToken } = await paginator.page(scope, { size: 3 }, list);
    await expect(paginator.page({ ...scope, filter: 'other' }, { size: 3, nextToken }, list)).rejects.toThrow(
      ServiceError,
    );
  });
});

describe('page tokens', () => {
  it('give back their cursor in their own scope', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (cursor) => {
        const plain = JSON.parse(JSON.stringify(cursor)) as DocumentValue;
        expect(paginator.decode(scope, paginator.encode(scope, plain))).toEqual(plain);
      }),
    );
  });

  it('stay in the alphabet and length that the model allows', () => {
    const token = paginator.encode(scope, { createdAt: 1769860800000, id: 'x'.repeat(100) });
    expect(token).toMatch(/^[A-Za-z0-9_-]{1,1024}$/);
  });

  it('are refused in another operation, account or filter, and by another key', () => {
    const token = paginator.encode(scope, 42);
    expect(paginator.decode({ ...scope, filter: { actorId: 'a', memoryId: 'm' } }, token)).toBe(42);
    const others = [
      { ...scope, operation: 'ListSessions' as const },
      { ...scope, accountId: '999999999999' },
      { ...scope, filter: { memoryId: 'm', actorId: 'b' } },
      { operation: scope.operation, accountId: scope.accountId },
    ];
    for (const other of others) expect(() => paginator.decode(other, token)).toThrow(ServiceError);
    expect(() => createPaginator(Buffer.alloc(32, 8)).decode(scope, token)).toThrow(ServiceError);
  });

  it('are refused when altered in any character, cut, or made up', () => {
    const token = paginator.encode(scope, { id: 'abc' });
    for (let i = 0; i < token.length; i++) {
      const altered = `${token.slice(0, i)}${token[i] === 'A' ? 'B' : 'A'}${token.slice(i + 1)}`;
      expect(() => paginator.decode(scope, altered), altered).toThrow(ServiceError);
      expect(() => paginator.decode(scope, token.slice(0, i))).toThrow(ServiceError);
    }
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), (made) => {
        expect(() => paginator.decode(scope, made)).toThrow(ServiceError);
      }),
    );
    expect(() => paginator.decode(scope, 'A'.repeat(100_000))).toThrow('nextToken');
  });

  it('need a key of full length', () => {
    expect(() => createPaginator(Buffer.alloc(31))).toThrow(RangeError);
  });
});
