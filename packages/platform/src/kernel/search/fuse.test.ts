import { describe, expect, it } from 'vitest';
import { fuse } from './fuse.ts';
import type { Hit } from './hit.ts';

const hits = (scores: Record<string, number>): Hit[] => Object.entries(scores).map(([id, score]) => ({ id, score }));
const order = (words: Record<string, number>, near: Record<string, number>): string[] =>
  fuse(hits(words), hits(near), new Map()).map(({ id }) => id);

describe('words and meaning in one ranking', () => {
  it('does not let a word or two that are there by chance stand before what is meant', () => {
    expect(order({ chance: 0.35 }, { meant: 0.5, chance: 0.35, c: 0.3, d: 0.3 })[0]).toBe('meant');
  });

  it('lets words weigh less the fewer of the query’s the best text has', () => {
    const near = { meant: 0.45, some: 0.4, c: 0.39, d: 0.38 };
    expect(order({ some: 0.2 }, near)[0]).toBe('meant');
    expect(order({ some: 0.5 }, near)[0]).toBe('some');
  });

  it('follows the words where nearly all of them are there', () => {
    expect(order({ said: 0.9 }, { near: 0.5, said: 0.4, c: 0.45, d: 0.45 })[0]).toBe('said');
  });

  it('gives meaning more weight where one text is nearer than all others', () => {
    const words = { b: 0.45 };
    expect(order(words, { a: 0.6, b: 0.4, c: 0.59, d: 0.58 })[0]).toBe('b');
    expect(order(words, { a: 0.6, b: 0.4, c: 0.15, d: 0.1 })[0]).toBe('a');
  });

  it('gives scores from 0 to 1, 1 for what has all words and the same meaning', () => {
    const found = fuse(hits({ a: 1, b: 0.5 }), hits({ a: 1, c: -0.2 }), new Map([['b', 0.3]]));
    expect(found[0]).toEqual({ id: 'a', score: 1 });
    for (const { score } of found) expect(score).toBeGreaterThanOrEqual(0);
  });
});
