import type { Settings } from '../project/settings.ts';

/** Names already sorted, with those of `first` put in front and those of `last` behind, each in the order given. */
export function orderSources(sorted: readonly string[], { first, last }: Pick<Settings, 'first' | 'last'>): string[] {
  const rank = (name: string): number => {
    const front = first.indexOf(name);
    if (front !== -1) return front - first.length;
    const back = last.indexOf(name);
    return back === -1 ? 0 : back + 1;
  };
  return [...sorted].sort((a, b) => rank(a) - rank(b));
}
