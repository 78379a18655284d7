import type { control } from '@agentplatform/contract';

const ANY = '*';

/** The entries of one rate limit, by the values that they are for. */
export class LimitEntries {
  readonly #dimensionKeys: readonly string[];
  readonly #byValues = new Map<string, control.LimitEntry>();

  constructor(dimensionKeys: readonly string[], entries: readonly control.LimitEntry[]) {
    this.#dimensionKeys = dimensionKeys;
    for (const entry of entries) this.#byValues.set(keyOf(this.valuesOf(entry)), entry);
  }

  /** What an entry is for, in the order of the keys. */
  valuesOf({ dimensions }: control.LimitEntry): string[] {
    return this.#dimensionKeys.map((key) => dimensions[key] ?? ANY);
  }

  /** The entry that is for exactly these values, else the one with the fewest wildcards at the end; undefined when none is. */
  find(values: readonly string[]): control.LimitEntry | undefined {
    for (let exact = values.length; exact >= 0; exact -= 1) {
      const found = this.#byValues.get(keyOf(values.map((value, i) => (i < exact ? value : ANY))));
      if (found) return found;
    }
    return undefined;
  }
}

/** Whether all wildcards are at the end. */
export function wildcardsLast(values: readonly string[]): boolean {
  const first = values.indexOf(ANY);
  return first < 0 || values.slice(first).every((value) => value === ANY);
}

/** Different for different lists of values. */
export function keyOf(values: readonly string[]): string {
  return JSON.stringify(values);
}
