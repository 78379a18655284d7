import type { Hit } from './hit.ts';

/** What nearness of meaning weighs beside shared words. */
const VECTOR_WEIGHT = 0.7;

/**
 * One ranking of two: the weighted sum of cosine and share of words, both from 0 to 1, so that a score means the same in
 * every search. `cosines`: of what only the words found.
 */
export function fuse(byWords: readonly Hit[], near: readonly Hit[], cosines: ReadonlyMap<string, number>): Hit[] {
  const words = new Map(byWords.map(({ id, score }) => [id, score]));
  const meaning = new Map([...cosines, ...near.map(({ id, score }): [string, number] => [id, score])]);
  const ids = new Set([...meaning.keys(), ...words.keys()]);
  return [...ids]
    .map((id) => ({
      id,
      score: VECTOR_WEIGHT * Math.max(0, meaning.get(id) ?? 0) + (1 - VECTOR_WEIGHT) * (words.get(id) ?? 0),
    }))
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
}
