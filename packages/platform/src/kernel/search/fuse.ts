import type { Hit } from './hit.ts';

/** The nearest stands out by how much nearer it is than the one of this rank. */
const BESIDE = 3;
/** How much meaning weighs more for it. */
const STANDS_OUT = 3;
/** A few of a query's words are often there by chance; most of them, seldom. */
const WORDS_POWER = 1.5;

/**
 * One ranking of two: the weighted mean of cosine and share of words, both from 0 to 1. Words count for more the more of the query's are there, and
 * meaning for more where one text is nearer than all others. Chosen on one half of LoCoMo and of sixty paraphrases, and held against the
 * other (`npm run bench -- memory-quality`). `cosines`: of what only the words found.
 */
export function fuse(byWords: readonly Hit[], near: readonly Hit[], cosines: ReadonlyMap<string, number>): Hit[] {
  const words = new Map(byWords.map(({ id, score }) => [id, score]));
  const meaning = new Map([...cosines, ...near.map(({ id, score }): [string, number] => [id, score])]);
  const ids = new Set([...meaning.keys(), ...words.keys()]);
  const weight = 1 + STANDS_OUT * lead(near);
  return [...ids]
    .map((id) => ({
      id,
      score: (weight * Math.max(0, meaning.get(id) ?? 0) + (words.get(id) ?? 0) ** WORDS_POWER) / (weight + 1),
    }))
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
}

/** By how much the nearest is nearer than those beside it; 0 where there are too few to tell. */
function lead(near: readonly Hit[]): number {
  const [first, beside] = [near[0], near[BESIDE]];
  return first && beside ? Math.max(0, first.score - beside.score) : 0;
}
