import { resolve } from 'node:path';
import { pino } from 'pino';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { fetchedModel } from '../../packages/platform/src/kernel/embeddings/index.ts';
import { Preparations } from '../../packages/platform/src/kernel/preparations.ts';

/** The cache of every platform under test. */
const CACHE = resolve(import.meta.dirname, '../../.cache/platform');

/**
 * The directory of a small sentence model, fetched once per checkout as the platform fetches it. Undefined where it cannot be had (said on
 * stderr): its tests are skipped then.
 */
export async function embeddingModel(): Promise<string | undefined> {
  const preparations = new Preparations(systemClock, pino({ level: 'silent' }));
  try {
    return await fetchedModel({ cacheDir: CACHE, preparations }, AbortSignal.timeout(300_000));
  } catch (error) {
    console.error(`SKIPPED: tests with an embedding model (${String(error).slice(0, 400)})`);
    return undefined;
  }
}
