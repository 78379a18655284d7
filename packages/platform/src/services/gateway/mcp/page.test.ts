import { expect, it } from 'vitest';
import type { Offered } from '../gateway-tools.ts';
import { pageOf } from './page.ts';

/** So many, each with a description of so many bytes. */
const tools = (count: number, bytes: number): Offered[] =>
  Array.from({ length: count }, (_, n) => {
    const tool = { description: 'x'.repeat(bytes) };
    return { listed: `t___${String(n).padStart(4, '0')}`, tool } as unknown as Offered;
  });

function pagesOf(all: readonly Offered[]): Offered[][] {
  const pages: Offered[][] = [];
  for (let cursor: string | undefined; ; ) {
    const { items, nextCursor } = pageOf(all, cursor);
    pages.push([...items]);
    if (nextCursor === undefined) return pages;
    cursor = nextCursor;
  }
}

it('ends after a thousand, or earlier where they are large, and loses none', () => {
  const small = tools(2_500, 10);
  expect(pagesOf(small).map(({ length }) => length)).toEqual([1_000, 1_000, 500]);
  const large = tools(100, 200_000);
  const pages = pagesOf(large);
  expect(pages.flat()).toEqual(large);
  for (const page of pages) expect(JSON.stringify(page).length).toBeLessThanOrEqual(4.1 * 1024 * 1024);
  expect(pages.length).toBeLessThan(8);
});

it('has one at least, however large it is, and all where a gateway has no pages', () => {
  expect(pagesOf(tools(3, 6_000_000)).map(({ length }) => length)).toEqual([1, 1, 1]);
  expect(pageOf(tools(3, 6_000_000), undefined, true).items).toHaveLength(3);
});
