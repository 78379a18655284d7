import type { Neighbour } from './candidate.ts';
import { contentWords, overlapOf } from './sentences.ts';

/** Share of words from which two sentences of one conversation may speak of the same. */
const ALIKE = 0.25;
/** Of the latest with a word, so many are compared. */
const MOST_COMPARED = 200;

interface Said {
  neighbour: Neighbour;
  words: ReadonlySet<string>;
}

/** What a batch has said so far, found by its words: a conversation corrects itself, too. */
export class SaidBefore {
  readonly #said: Said[] = [];
  readonly #byWord = new Map<string, number[]>();

  add(neighbour: Neighbour): void {
    const words = new Set(contentWords(neighbour.content));
    const place = this.#said.push({ neighbour, words }) - 1;
    for (const word of words) {
      const places = this.#byWord.get(word);
      if (places) places.push(place);
      else this.#byWord.set(word, [place]);
    }
  }

  /** What speaks of the same most, at most `limit`, the newest first. */
  alike(text: string, limit: number): Neighbour[] {
    const words = new Set(contentWords(text));
    const places = new Set([...words].flatMap((word) => this.#byWord.get(word)?.slice(-MOST_COMPARED) ?? []));
    return [...places]
      .flatMap((place) => {
        const said = this.#said[place];
        return said ? [{ place, neighbour: said.neighbour, overlap: overlapOf(words, said.words) }] : [];
      })
      .filter(({ overlap }) => overlap >= ALIKE)
      .sort((a, b) => b.overlap - a.overlap)
      .slice(0, limit)
      .sort((a, b) => b.place - a.place)
      .map(({ neighbour }) => neighbour);
  }
}
