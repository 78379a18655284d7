/**
 * The work's result, or the signal's reason as soon as it aborts, whatever the work does then: undici looks at its signal only once it
 * is connected, and to an address that is gone that takes its whole time limit. `late` gets a result that nobody waits for any more.
 */
export async function untilAborted<T>(
  work: Promise<T>,
  signal: AbortSignal,
  late: (result: T) => void = () => undefined,
): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } catch (error) {
    work.then(late, () => undefined);
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
