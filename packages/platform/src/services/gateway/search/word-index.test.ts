import { describe, expect, it } from 'vitest';
import { WordIndex } from './word-index.ts';

/** What an index of these texts finds. */
async function found(texts: string[], query: string, limit: number): Promise<string[]> {
  const index = await WordIndex.of(texts, (text) => [[text, 1]]);
  return index.find(query, limit).map(({ item }) => item);
}

describe('an index of words', () => {
  it('puts first what holds the rarest words of a query', async () => {
    const best = await found(
      ['get an order', 'cancel an order', 'get a customer', 'get an invoice'],
      'cancel the order',
      10,
    );
    expect(best).toEqual(['cancel an order', 'get an order']);
  });

  it('knows the parts of camelCase names, and a plural as its singular', async () => {
    expect(await found(['listUserAddresses', 'getOrder'], 'user address', 10)).toEqual(['listUserAddresses']);
    expect(await found(['getOrder', 'x'], 'ORDERS', 10)).toEqual(['getOrder']);
  });

  it('finds nothing for words that stand nowhere, for no words and in no list', async () => {
    expect(await found(['b c'], 'zebra', 10)).toEqual([]);
    expect(await found(['b c'], '?!', 10)).toEqual([]);
    expect(await found([], 'b', 10)).toEqual([]);
  });

  it('takes the weight of a place, and gives no more than it is asked for', async () => {
    const items = [
      { name: 'x', about: 'order' },
      { name: 'order', about: 'x' },
    ];
    const weighed = await WordIndex.of(items, ({ name, about }) => [
      [name, 3],
      [about, 1],
    ]);
    expect(weighed.find('order', 1)).toMatchObject([{ item: items[1] }]);
  });

  it('passes over words that say nothing of a task', async () => {
    expect(await found(['mails it to them', 'books a flight'], 'fly to Rome with it', 10)).toEqual([]);
  });

  it('gives the share of the query that a text holds, from 0 to 1', async () => {
    const made = await WordIndex.of(['order '.repeat(50), 'order', 'refund an order', 'x', 'y', 'z'], (text) => [
      [text, 1],
    ]);
    const [both, often] = made.find('refund order', 10);
    expect(both).toMatchObject({ item: 'refund an order' });
    expect(both?.score).toBeGreaterThan(0.5);
    expect(both?.score).toBeLessThanOrEqual(1);
    expect(often?.score).toBeLessThan(0.5);
    // A word that stands nowhere counts, too: little of such a query is held.
    expect(made.find('order zebra', 1)[0]?.score).toBeLessThan(made.find('order', 1)[0]?.score ?? 0);
  });

  it('lets others have their turns while it is made of many texts', async () => {
    const texts = Array.from({ length: 20_000 }, (_, i) => `tool ${i} ${'of some words '.repeat(30)}`);
    let turns = 0;
    const counting = setInterval(() => turns++, 0);
    await found(texts, 'tool', 1).finally(() => clearInterval(counting));
    expect(turns).toBeGreaterThan(5);
  });

  it('takes a long query in bounded time', async () => {
    expect(await found(['needle'], `needle ${'straw '.repeat(100_000)}`, 1)).toEqual(['needle']);
  });
});
