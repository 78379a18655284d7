import type { Hit } from './hit.ts';

/** The nearest stands out by how much nearer it is than the one of this rank. */
const BESIDE = 3;
/** How much meaning weighs more for it. */
const STANDS_OUT = 3;
/** Where a text has so much of the query's words, words weigh in full. */
const TRUSTED = 0.5;
/** How much they weigh then beside meaning. */
const WORDS_WEIGHT = 1.5;
/** A few of a query's words are often there by chance; most of them, seldom. */
const WORDS_POWER = 1.5;

/**
 * One ranking of two: the weighted mean of cosine and share of words, both from 0 to 1. Words weigh less the fewer of the query's the best text has:
 * a query in other words than the texts' is for meaning alone. Meaning weighs more where one text is nearer than all others. Chosen on one half of
 * LoCoMo and of sixty paraphrases, and held against the other (`npm run bench -- memory-quality`). `cosines`: of what only the words found.
 */
export function fuse(byWords: readonly Hit[], near: readonly Hit[], cosines: ReadonlyMap<string, number>): Hit[] {
  const words = new Map(byWords.map(({ id, score }) => [id, score]));
  const meaning = new Map([...cosines, ...near.map(({ id, score }): [string, number] => [id, score])]);
  const ids = new Set([...meaning.keys(), ...words.keys()]);
  const most = Math.max(0, ...words.values());
  const weights = { meaning: 1 + STANDS_OUT * lead(near), words: WORDS_WEIGHT * Math.min(1, most / TRUSTED) };
  return [...ids]
    .map((id) => ({
      id,
      score:
        (weights.meaning * Math.max(0, meaning.get(id) ?? 0) + weights.words * (words.get(id) ?? 0) ** WORDS_POWER) /
        (weights.meaning + weights.words),
    }))
    .sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
}

/** By how much the nearest is nearer than those beside it; 0 where there are too few to tell. */
function lead(near: readonly Hit[]): number {
  const [first, beside] = [near[0], near[BESIDE]];
  return first && beside ? Math.max(0, first.score - beside.score) : 0;
}
