/** The parts that `--only` names, parted by commas, or all. Throws for any other word. */
export function partsOf<const Part extends string>(args: readonly string[], parts: readonly Part[]): readonly Part[] {
  const at = args.indexOf('--only');
  if (at < 0) return parts;
  const named = (args[at + 1] ?? '').split(',');
  const unknown = named.filter((name) => !parts.some((part) => part === name));
  if (unknown.length > 0) throw new Error(`${unknown.join()} is no part: those are ${parts.join(', ')}`);
  return parts.filter((part) => named.includes(part));
}

/** The number behind an option; undefined without the option. Throws for what is no number above 0. */
export function numberAfter(args: readonly string[], name: string): number | undefined {
  const at = args.indexOf(name);
  if (at < 0) return undefined;
  const number = Number(args[at + 1]);
  if (!(number > 0)) throw new Error(`${name} needs a number above 0`);
  return number;
}
