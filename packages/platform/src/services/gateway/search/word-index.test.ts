import { describe, expect, it } from 'vitest';
import { WordIndex } from './word-index.ts';

/** Those of an index of these texts. */
const index = (texts: string[]) => {
  const made = new WordIndex(texts, (text) => [[text, 1]]);
  return { find: (query: string, limit: number) => made.find(query, limit).map(({ item }) => item) };
};

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
    expect(index(['b c']).find('zebra', 10)).toEqual([]);
    expect(index(['b c']).find('?!', 10)).toEqual([]);
    expect(index([]).find('b', 10)).toEqual([]);
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
    expect(weighed.find('order', 1)).toMatchObject([{ item: items[1] }]);
  });

  it('passes over words that say nothing of a task', () => {
    expect(index(['mails it to them', 'books a flight']).find('fly to Rome with it', 10)).toEqual([]);
  });

  it('gives the share of the query that a text holds, from 0 to 1', () => {
    const made = new WordIndex(['order '.repeat(50), 'order', 'refund an order', 'x', 'y', 'z'], (text) => [[text, 1]]);
    const [both, often] = made.find('refund order', 10);
    expect(both).toMatchObject({ item: 'refund an order' });
    expect(both?.score).toBeGreaterThan(0.5);
    expect(both?.score).toBeLessThanOrEqual(1);
    expect(often?.score).toBeLessThan(0.5);
    // A word that stands nowhere counts, too: little of such a query is held.
    expect(made.find('order zebra', 1)[0]?.score).toBeLessThan(made.find('order', 1)[0]?.score ?? 0);
  });

  it('takes a long query in bounded time', () => {
    expect(index(['needle']).find(`needle ${'straw '.repeat(100_000)}`, 1)).toEqual(['needle']);
  });
});
