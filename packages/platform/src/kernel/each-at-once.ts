/** Runs `work` on every item, at most `most` at a time. The first failure ends the others, and is told when none is under way any more. */
export async function eachAtOnce<T>(
  most: number,
  items: readonly T[],
  signal: AbortSignal | undefined,
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const failed = new AbortController();
  const both = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal;
  const queue = items.values();
  const lane = async (): Promise<void> => {
    for (const item of queue) {
      both.throwIfAborted();
      await work(item, both);
    }
  };
  const lanes = Array.from({ length: most }, () =>
    lane().catch((error: unknown) => {
      if (!failed.signal.aborted) failed.abort(error);
      throw error;
    }),
  );
  const results = await Promise.allSettled(lanes);
  if (results.some((result) => result.status === 'rejected'))
    throw signal?.aborted ? signal.reason : failed.signal.reason;
}
