import { cleanName } from '../tools/tool-names.ts';

/** The longest name of a property that every provider of models takes. */
const LONGEST = 64;

/** Names of a tool's arguments: one for each parameter and field, also where several have the same name in different places. */
export class ArgumentNames {
  readonly #taken = new Set<string>();

  /** The name itself, cleaned of letters that model providers refuse; then with its place behind it, then numbered. */
  claim(name: string, place: string): string {
    const wanted = cleanName(name).slice(0, LONGEST) || 'argument';
    let claimed = wanted;
    for (let next = 1; this.#taken.has(claimed); next += 1) {
      const ending = next === 1 ? `_${place}` : `_${place}_${next}`;
      claimed = `${wanted.slice(0, LONGEST - ending.length)}${ending}`;
    }
    this.#taken.add(claimed);
    return claimed;
  }
}
