import { inSlices } from '../../../kernel/in-slices.ts';

/** BM25 (Robertson and Zaragoza 2009), with its usual constants. */
const K1 = 1.2;
const B = 0.75;
const MOST_QUERY_WORDS = 32;

interface Posting {
  item: number;
  /** How often the word stands there, each place with its weight. */
  count: number;
}

/** Finds things by the words of their texts. Lives in memory; made once for a list that does not change. */
export class WordIndex<Item> {
  readonly #items: readonly Item[];
  readonly #postings = new Map<string, Posting[]>();
  readonly #lengths: Float64Array;
  #meanLength = 0;

  private constructor(items: readonly Item[]) {
    this.#items = items;
    this.#lengths = new Float64Array(items.length);
  }

  /** Made in slices: of thousands of long texts it takes seconds. */
  static async of<Item>(
    items: readonly Item[],
    textsOf: (item: Item) => readonly (readonly [text: string, weight: number])[],
  ): Promise<WordIndex<Item>> {
    const index = new WordIndex(items);
    await inSlices(items, (item, at) => index.#add(at, textsOf(item)));
    const total = index.#lengths.reduce((sum, one) => sum + one, 0);
    index.#meanLength = total / Math.max(1, items.length);
    return index;
  }

  /** At most so many, best first; those of one score in the order of the list. A score is the share of what the query's words can count. */
  find(query: string, limit: number): { item: Item; score: number }[] {
    const scores = new Map<number, number>();
    let most = 0;
    for (const word of new Set(wordsOf(query).slice(0, MOST_QUERY_WORDS))) {
      const postings = this.#postings.get(word) ?? [];
      const rarity = Math.log(1 + (this.#items.length - postings.length + 0.5) / (postings.length + 0.5));
      most += rarity * (K1 + 1);
      for (const { item, count } of postings) {
        const length = (this.#lengths[item] ?? 0) / this.#meanLength;
        const score = (rarity * count * (K1 + 1)) / (count + K1 * (1 - B + B * length));
        scores.set(item, (scores.get(item) ?? 0) + score);
      }
    }
    return [...scores]
      .sort(([i, a], [j, b]) => b - a || i - j)
      .slice(0, limit)
      .flatMap(([i, score]) => {
        const item = this.#items[i];
        return item === undefined ? [] : [{ item, score: score / most }];
      });
  }

  #add(item: number, texts: readonly (readonly [string, number])[]): void {
    const counts = new Map<string, number>();
    for (const [text, weight] of texts)
      for (const word of wordsOf(text)) {
        counts.set(word, (counts.get(word) ?? 0) + weight);
        this.#lengths[item] = (this.#lengths[item] ?? 0) + 1;
      }
    for (const [word, count] of counts) {
      const postings = this.#postings.get(word);
      if (postings) postings.push({ item, count });
      else this.#postings.set(word, [{ item, count }]);
    }
  }
}

const WORD = /[\p{L}\p{N}]+/gu;

/** Words that say nothing of a task; in a short list of tools they would be rare, and count. */
const EMPTY_WORDS = new Set(
  'a an and are as at be by can do does for from give has have how i if in is it its many me much my of on or our that the their them then there these this to us was we what when where which who will with you your'.split(
    ' ',
  ),
);

/** The words of a text in small letters; parts of a `camelCaseName` are words, and a plural is its singular. */
function wordsOf(text: string): string[] {
  const parted = text.replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2').toLowerCase();
  return (parted.match(WORD) ?? [])
    .filter((word) => !EMPTY_WORDS.has(word))
    .map((word) => (word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word));
}
