import { programOf, type Step } from './pattern-program.ts';
import { readPattern } from './pattern-syntax.ts';

/** All that the automaton may be in after some text. */
interface State {
  /** Places of the steps that wait for a character, and of those that want the end. */
  readonly places: readonly number[];
  /** Whether the whole text matches if it ends here. */
  readonly accepts: boolean;
  /** What follows by character; ASCII only, and made when first met. */
  readonly next: (State | undefined)[];
}

/** States kept at once; they are made again when there would be more. */
const MOST_STATES = 200;

/**
 * A regular expression that tells whether a whole text matches, in time that grows with the length of the text alone: all
 * ways through the pattern are followed at once instead of one after the other (Thompson's construction, its states made
 * when they are met). For patterns that come from users, and for those of the model on which `RegExp` may go back again and
 * again. The syntax is JavaScript's, without look-around, back references and word boundaries.
 */
export class LinearPattern {
  readonly #steps: readonly Step[];
  readonly #states = new Map<string, State>();
  readonly #first: State;

  /**
   * Throws `SyntaxError` for what is no regular expression, `UnsupportedPatternError` for one that this cannot match or that
   * has more than `maxSteps` steps (1,000 unless said otherwise).
   */
  constructor(source: string, { maxSteps }: { maxSteps?: number } = {}) {
    this.#steps = programOf(readPattern(source), maxSteps);
    this.#first = this.#state([0], true);
  }

  /** Steps that it is made of: no character of a text costs more than that many. */
  get size(): number {
    return this.#steps.length;
  }

  /** Whether the whole text matches. */
  test(text: string): boolean {
    let state = this.#first;
    for (let at = 0; at < text.length; ) {
      if (state.places.length === 0) return false;
      const code = text.charCodeAt(at);
      const known = code < 128 ? state.next[code] : undefined;
      if (known) {
        state = known;
        at += 1;
      } else {
        const char = String.fromCodePoint(text.codePointAt(at) ?? 0);
        const next = this.#after(state, char);
        if (code < 128) state.next[code] = next;
        state = next;
        at += char.length;
      }
    }
    return state.accepts;
  }

  #after({ places }: State, char: string): State {
    const reached: number[] = [];
    for (const place of places) {
      const step = this.#steps[place];
      if (step?.kind === 'char' && step.accepts(char)) reached.push(step.next);
    }
    return this.#state(reached, false);
  }

  #state(reached: readonly number[], atStart: boolean): State {
    const places = this.#closure(reached, atStart, false);
    // The first state alone may pass a `^`, and nothing leads back to it.
    const key = `${atStart ? '^' : ''}${places.join()}`;
    const known = this.#states.get(key);
    if (known) return known;
    if (this.#states.size >= MOST_STATES) this.#forget();
    const ends = this.#closure(places, atStart, true);
    const state: State = { places, accepts: ends.some((place) => this.#steps[place]?.kind === 'matched'), next: [] };
    this.#states.set(key, state);
    return state;
  }

  #forget(): void {
    // Those that are in use hold on to each other: what they have learnt has to go as well.
    for (const state of this.#states.values()) state.next.length = 0;
    this.#states.clear();
  }

  /** Every place that is reached without a character, in order. */
  #closure(from: readonly number[], atStart: boolean, atEnd: boolean): number[] {
    const seen = new Uint8Array(this.#steps.length);
    const left = [...from];
    const found: number[] = [];
    for (let place = left.pop(); place !== undefined; place = left.pop()) {
      if (seen[place] === 1) continue;
      seen[place] = 1;
      const step = this.#steps[place];
      if (step === undefined) continue;
      if (step.kind === 'either') left.push(step.next, step.other);
      else if ((step.kind === 'start' && atStart) || (step.kind === 'end' && atEnd)) left.push(step.next);
      else if (step.kind !== 'start') found.push(place);
    }
    return found.sort((a, b) => a - b);
  }
}
