/** Wraps a function whose last argument is a credential: callers leave it out. */
export type Handing = <Args extends unknown[], Result>(
  work: (...args: [...Args, credential: string]) => Result | Promise<Result>,
) => (...args: Args) => Promise<Result>;

/** Gives functions what `get` resolves with. */
export function handing(get: () => Promise<string>): Handing {
  return (work) =>
    async (...args) =>
      work(...args, await get());
}
