import { Stop } from './stop.mjs';

/** Exit statuses from here on say that a signal ended it. */
const SIGNALLED = 128;

/**
 * Resolves with what all works bring. What fails is told when none is at work any more, in their order; an interruption at once, for what
 * else is under way may wait for a lock that somebody else holds for minutes.
 * @template {readonly unknown[]} T
 * @param {readonly [...{ [K in keyof T]: Promise<T[K]> }]} works
 * @returns {Promise<T>}
 */
export async function sideBySide(works) {
  const interrupted = new Promise((_, reject) => {
    for (const work of works)
      work.catch((error) => {
        if (error instanceof Stop && error.exitCode >= SIGNALLED) reject(error);
      });
  });
  const results = await Promise.race([Promise.allSettled(works), interrupted]);
  const failed = results.find(({ status }) => status === 'rejected');
  if (failed) throw failed.reason;
  return results.map(({ value }) => value);
}
