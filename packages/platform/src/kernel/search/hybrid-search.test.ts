import pino from 'pino';
import { describe, expect, it } from 'vitest';
import type { Hit } from './hit.ts';
import { HybridSearch, type VectorSearch } from './hybrid-search.ts';

interface Entry {
  id: string;
  target: string;
  text: string;
}

const best = (hits: readonly Hit[], limit: number): Hit[] =>
  hits
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
    .slice(0, limit);

/** A catalogue in memory, as one of tools would be: narrowed by where an entry comes from, a vector for each text at hand. */
class Catalogue implements VectorSearch<string | undefined, Float32Array> {
  readonly #entries: readonly { entry: Entry; words: ReadonlySet<string>; vector: Float32Array }[];
  readonly embed: (text: string) => Promise<Float32Array>;

  constructor(entries: readonly Entry[], vectorOf: (text: string) => Float32Array) {
    this.#entries = entries.map((entry) => ({
      entry,
      words: new Set(entry.text.split(' ')),
      vector: vectorOf(entry.text),
    }));
    this.embed = async (text) => vectorOf(text);
  }

  #of(target: string | undefined) {
    return this.#entries.filter(({ entry }) => target === undefined || entry.target === target);
  }

  async words(target: string | undefined, query: string, limit: number): Promise<Hit[]> {
    const asked = query.split(' ');
    const shareOf = (words: ReadonlySet<string>) => asked.filter((word) => words.has(word)).length / asked.length;
    return best(
      this.#of(target).map(({ entry, words }) => ({ id: entry.id, score: shareOf(words) })),
      limit,
    );
  }

  async search(target: string | undefined, vector: Float32Array, limit: number): Promise<Hit[]> {
    return best(
      this.#of(target).map((one) => ({ id: one.entry.id, score: dot(one.vector, vector) })),
      limit,
    );
  }

  async cosines(ids: readonly string[], vector: Float32Array): Promise<Map<string, number>> {
    const wanted = new Set(ids);
    const found = this.#entries.filter(({ entry }) => wanted.has(entry.id));
    return new Map(found.map((one) => [one.entry.id, dot(one.vector, vector)]));
  }
}

const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);

/** A direction for each meaning; words that mean the same have the same. */
const MEANINGS = [
  ['weather', 'forecast'],
  ['mail', 'letter'],
  ['money', 'invoice'],
];
function vectorOf(text: string): Float32Array {
  const words = text.split(' ');
  const counts = MEANINGS.map((alike) => words.filter((word) => alike.includes(word)).length);
  const length = Math.hypot(...counts) || 1;
  return Float32Array.from(counts, (count) => count / length);
}

const ENTRIES = Array.from(
  { length: 5_000 },
  (_, n): Entry => ({
    id: `tool${String(n).padStart(4, '0')}`,
    target: `target${n % 7}`,
    text: `tool${n} ${n % 1_000 === 3 ? 'weather' : n % 2 === 0 ? 'mail' : 'money'} of town${n % 50}`,
  }),
);
const catalogue = new Catalogue(ENTRIES, vectorOf);
const warnings: string[] = [];
const log = pino({ level: 'warn' }, { write: (line: string) => void warnings.push(line) });
const searchWith = (current: VectorSearch<string | undefined, Float32Array> | undefined) =>
  new HybridSearch({ words: (...asked) => catalogue.words(...asked), vectors: { current }, log });
const ids = (hits: readonly Hit[]): string[] => hits.map(({ id }) => id);
const weather = ['tool0003', 'tool1003', 'tool2003', 'tool3003', 'tool4003'];

describe('hybrid search of a catalogue in memory', () => {
  it('finds by meaning what no word finds, and by a word what meaning does not tell apart', async () => {
    expect(ids(await catalogue.words(undefined, 'forecast', 10))).toEqual([]);
    expect(ids(await searchWith(catalogue).search(undefined, 'forecast', 10))).toEqual(weather);
    expect(ids(await searchWith(catalogue).search(undefined, 'letter tool4998', 1))).toEqual(['tool4998']);
  });

  it('gives what words alone found its nearness too, however far behind it is in the other list', async () => {
    // 2,498 entries mean the same; the last of them is not among the nearest that are fused.
    const [first] = await searchWith(catalogue).search(undefined, 'letter tool4998', 1);
    expect(first?.score).toBeCloseTo((1 + 1.5 * 0.5 ** 1.5) / 2.5, 5);
  });

  it('keeps to its filter and to as many as were asked for', async () => {
    expect(ids(await searchWith(catalogue).search('target3', 'forecast', 10))).toEqual(['tool0003']);
    expect(ids(await searchWith(catalogue).search(undefined, 'forecast', 2))).toEqual(weather.slice(0, 2));
    expect(await searchWith(catalogue).search(undefined, 'mail', 300)).toHaveLength(300);
  });

  it('is by words alone without a model, and when the model fails', async () => {
    const byWords = await catalogue.words(undefined, 'weather town3', 10);
    expect(byWords.length).toBe(10);
    expect(await searchWith(undefined).search(undefined, 'weather town3', 10)).toEqual(byWords);
    expect(warnings).toEqual([]);
    const failing: VectorSearch<string | undefined, Float32Array> = {
      embed: () => Promise.reject(new Error('the model is away')),
      search: (...asked) => catalogue.search(...asked),
      cosines: (...asked) => catalogue.cosines(...asked),
    };
    expect(await searchWith(failing).search(undefined, 'weather town3', 10)).toEqual(byWords);
    expect(warnings.join()).toContain('by words alone');
  });
});
