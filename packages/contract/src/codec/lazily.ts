/**
 * A cache of functions compiled at first use, one per name. The function for a name may refer to itself or to one that
 * refers back to it, as recursive shapes do, because building waits until the first call.
 */
export function lazily<A extends unknown[], R>(
  build: (name: string) => (...args: A) => R,
): (name: string) => (...args: A) => R {
  const cache = new Map<string, (...args: A) => R>();
  return (name) => {
    const known = cache.get(name);
    if (known !== undefined) return known;
    let built: ((...args: A) => R) | undefined;
    const entry = (...args: A): R => {
      built ??= build(name);
      return built(...args);
    };
    cache.set(name, entry);
    return entry;
  };
}
