import { matchesName } from '../project/name-pattern.ts';
import type { Settings } from '../project/settings.ts';

type Order = Pick<Settings, 'first' | 'last'>;

/** Names already sorted, with those of `first` put in front and those of `last` behind, each in the order given. */
export function orderSources(sorted: readonly string[], { first, last }: Order): string[] {
  const place = (patterns: readonly string[], name: string): number =>
    patterns.findIndex((pattern) => matchesName(pattern, name));
  const rank = (name: string): number => {
    const front = place(first, name);
    if (front !== -1) return front - first.length;
    return place(last, name) + 1;
  };
  return sorted
    .map((name) => ({ name, rank: rank(name) }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ name }) => name);
}

/** What `first` and `last` name and no source is. */
export function unmatchedNames(names: readonly string[], { first, last }: Order): string[] {
  return [...first, ...last].filter((pattern) => !names.some((name) => matchesName(pattern, name)));
}
