import { describe, expect, it } from 'vitest';
import { WordIndex } from './word-index.ts';

const index = (texts: string[]) => new WordIndex(texts, (text) => [[text, 1]]);

describe('an index of words', () => {
  it('puts first what holds the rarest words of a query', () => {
    const found = index(['get an order', 'cancel an order', 'get a customer', 'get an invoice']).find(
      'cancel the order',
      10,
    );
    expect(found).toEqual(['cancel an order', 'get an order']);
  });

  it('knows the parts of camelCase names, and a plural as its singular', () => {
    expect(index(['listUserAddresses', 'getOrder']).find('user address', 10)).toEqual(['listUserAddresses']);
    expect(index(['getOrder', 'x']).find('ORDERS', 10)).toEqual(['getOrder']);
  });

  it('finds nothing for words that stand nowhere, for no words and in no list', () => {
    expect(index(['a b']).find('zebra', 10)).toEqual([]);
    expect(index(['a b']).find('?!', 10)).toEqual([]);
    expect(index([]).find('a', 10)).toEqual([]);
  });

  it('takes the weight of a place, and gives no more than it is asked for', () => {
    const items = [
      { name: 'x', about: 'order' },
      { name: 'order', about: 'x' },
    ];
    const weighed = new WordIndex(items, ({ name, about }) => [
      [name, 3],
      [about, 1],
    ]);
    expect(weighed.find('order', 1)).toEqual([items[1]]);
  });

  it('takes a long query in bounded time', () => {
    expect(index(['needle']).find(`needle ${'straw '.repeat(100_000)}`, 1)).toEqual(['needle']);
  });
});
