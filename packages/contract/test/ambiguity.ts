import { programOf, type Step } from '../src/linear/pattern-program.ts';
import { type PatternNode, readPattern } from '../src/linear/pattern-syntax.ts';

/** Longest count of one character that is written out; a larger one, or of more than a character, is taken for a loop. */
const WRITTEN_OUT = 8;

const CHARS = [
  ...Array.from({ length: 0x180 }, (_, code) => String.fromCodePoint(code)),
  ...['\u0416', '\u2028', '\u2029', '\u200b', '\u4e2d', '\ue000', '\u{1f600}', '\u{10ffff}'],
];

/**
 * Whether a matcher that tries one way after the other takes linear time for the pattern on every text: then the ways to read
 * a text up to any place in the pattern must be bounded in number, whatever the text. They are not when some text leads from
 * a place to itself in two ways, or from one place to itself, from it to another, and from the other to itself (Weber and
 * Seidl 1991, criteria EDA and IDA; Weideman et al. 2016 for matchers). Judged by structure, no time is taken. Errs towards "no".
 */
export function takesLinearTime(source: string): boolean {
  // A look at what must not follow, at the very start: judged beside the rest.
  const ahead = /^\(\?!([^()]*)\)/.exec(source);
  if (ahead) return takesLinearTime(ahead[1] ?? '') && takesLinearTime(source.slice(ahead[0].length));
  return !new Ambiguity(programOf(loosened(readPattern(source)))).isUnbounded();
}

/** Counts as loops, assertions as nothing: both only add ways. */
function loosened(node: PatternNode): PatternNode {
  switch (node.kind) {
    case 'char':
      return node;
    case 'start':
    case 'end':
      return { kind: 'sequence', parts: [] };
    case 'sequence':
      return { kind: 'sequence', parts: node.parts.map(loosened) };
    case 'choice':
      return { kind: 'choice', options: node.options.map(loosened) };
    case 'repeat': {
      const short = node.body.kind === 'char' && node.max <= WRITTEN_OUT;
      const once = node.max <= 1;
      const max = short || once ? node.max : Number.POSITIVE_INFINITY;
      return { kind: 'repeat', body: loosened(node.body), min: short ? node.min : Math.min(node.min, 1), max };
    }
  }
}

class Ambiguity {
  readonly #steps: readonly Step[];
  /** Of each place that reads a character: where it may read next, and in how many ways (two stand for more). */
  readonly #after = new Map<number, Map<number, number>>();
  readonly #reads = new Map<number, Set<string>>();
  readonly #reach = new Map<number, Set<number>>();
  readonly #overlaps = new Map<string, boolean>();

  constructor(steps: readonly Step[]) {
    this.#steps = steps;
    for (const [place, step] of steps.entries()) {
      if (step.kind !== 'char') continue;
      this.#reads.set(place, new Set(CHARS.filter((char) => step.accepts(char))));
      this.#after.set(place, this.#ways(step.next));
    }
    for (const place of this.#after.keys()) this.#reach.set(place, this.#reachable(place));
  }

  isUnbounded(): boolean {
    const loops = [...this.#after.keys()].filter((place) => this.#leads(place, place));
    return loops.some(
      (p) => this.#returnsTwice(p) || loops.some((q) => p !== q && this.#leads(p, q) && this.#splits(p, q)),
    );
  }

  /** EDA: one text leads from `p` back to it in two ways. */
  #returnsTwice(p: number): boolean {
    const together = (place: number): boolean => this.#leads(p, place) && this.#leads(place, p);
    const twice = [...this.#after].some(
      ([from, ways]) => together(from) && [...ways].some(([to, count]) => count > 1 && together(to)),
    );
    if (twice) return true;
    const apart = this.#search([[p, p]], ([a, b]) => a !== b, together);
    return apart.some((pair) => this.#search([pair], ([a, b]) => a === p && b === p, together).length > 0);
  }

  /** IDA: one text leads from `p` to `p`, from `p` to `q` and from `q` to `q`. */
  #splits(p: number, q: number): boolean {
    const near = (place: number, index: number): boolean =>
      index === 0
        ? this.#leads(p, place) && this.#leads(place, p)
        : index === 2
          ? this.#leads(q, place) && this.#leads(place, q)
          : this.#leads(p, place) && this.#leads(place, q);
    return this.#search([[p, p, q]], ([a, b, c]) => a === p && b === q && c === q, near).length > 0;
  }

  /** Tuples fulfilling `wanted` to which one text leads, all parts read the same characters; `near` keeps parts where they may get back. */
  #search(
    from: number[][],
    wanted: (tuple: number[]) => boolean,
    near: (place: number, index: number) => boolean,
  ): number[][] {
    const seen = new Set<string>();
    const found: number[][] = [];
    for (let left = from; left.length > 0; ) {
      const next: number[][] = [];
      for (const tuple of left) {
        for (const step of this.#together(tuple, near)) {
          const key = step.join();
          if (seen.has(key)) continue;
          seen.add(key);
          if (wanted(step)) found.push(step);
          next.push(step);
        }
      }
      left = next;
    }
    return found;
  }

  #together(tuple: number[], near: (place: number, index: number) => boolean): number[][] {
    let partial: number[][] = [[]];
    for (const [index, place] of tuple.entries()) {
      const ways = [...(this.#after.get(place)?.keys() ?? [])].filter((to) => near(to, index));
      partial = partial.flatMap((done) =>
        ways.filter((to) => done.every((other) => this.#overlap(to, other))).map((to) => [...done, to]),
      );
    }
    return partial;
  }

  #overlap(a: number, b: number): boolean {
    const key = a < b ? `${a},${b}` : `${b},${a}`;
    let known = this.#overlaps.get(key);
    if (known === undefined) {
      const other = this.#reads.get(b);
      known = [...(this.#reads.get(a) ?? [])].some((char) => other?.has(char) === true);
      this.#overlaps.set(key, known);
    }
    return known;
  }

  #ways(from: number): Map<number, number> {
    const ways = new Map<number, number>();
    const walk = (place: number, path: readonly number[]): void => {
      const step = this.#steps[place];
      // Twice: a loop within a loop is left, and entered again by the outer one.
      if (step === undefined || path.filter((passed) => passed === place).length > 1) return;
      if (step.kind === 'char') ways.set(place, Math.min(2, (ways.get(place) ?? 0) + 1));
      if (step.kind !== 'either') return;
      walk(step.next, [...path, place]);
      if (step.other !== step.next) walk(step.other, [...path, place]);
    };
    walk(from, []);
    return ways;
  }

  #reachable(from: number): Set<number> {
    const reached = new Set<number>();
    const left = [from];
    for (let place = left.pop(); place !== undefined; place = left.pop()) {
      for (const to of this.#after.get(place)?.keys() ?? []) {
        if (reached.has(to)) continue;
        reached.add(to);
        left.push(to);
      }
    }
    return reached;
  }

  #leads(from: number, to: number): boolean {
    return this.#reach.get(from)?.has(to) === true;
  }
}
