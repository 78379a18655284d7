import { pino } from 'pino';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { fetchedModel } from '../../packages/platform/src/kernel/embeddings/index.ts';
import { Preparations } from '../../packages/platform/src/kernel/preparations.ts';
import { PLATFORM_CACHE } from '../../scripts/test/fetched-once.ts';

/**
 * The directory of a small sentence model, fetched once as the platform fetches it. Undefined where it cannot be had (said on
 * stderr): its tests are skipped then.
 */
export async function embeddingModel(): Promise<string | undefined> {
  const preparations = new Preparations(systemClock, pino({ level: 'silent' }));
  try {
    return await fetchedModel({ cacheDir: PLATFORM_CACHE, preparations }, AbortSignal.timeout(300_000));
  } catch (error) {
    console.error(`SKIPPED: tests with an embedding model (${String(error).slice(0, 400)})`);
    return undefined;
  }
}
