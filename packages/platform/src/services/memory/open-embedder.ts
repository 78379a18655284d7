import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Config } from '../../config.ts';
import type { Clock } from '../../kernel/clock.ts';
import {
  type Embedder,
  openBedrockEmbedder,
  openHttpEmbedder,
  openLocalEmbedder,
} from '../../kernel/embeddings/index.ts';

/**
 * The embedding model that the configuration names: an endpoint, a directory, or `models/embedding` in the data directory
 * when there is one. Without one, or when it cannot be opened, memory searches by words alone, and a warning says why.
 */
export async function openEmbedder(
  config: Config,
  { clock, log }: { clock: Clock; log: Logger },
): Promise<Embedder | undefined> {
  const { url, api, model, key, directory = join(config.data, 'models', 'embedding') } = config.embeddings;
  const open = api === 'bedrock' ? openBedrockEmbedder : openHttpEmbedder;
  try {
    if (url !== undefined) return await open({ url, model, ...(key === undefined ? {} : { apiKey: key }) });
    if (config.embeddings.directory === undefined && !existsSync(join(directory, 'config.json'))) return undefined;
    const embedder = await openLocalEmbedder({ directory, clock });
    log.info({ model: embedder.model, dimensions: embedder.dimensions }, 'embedding model found');
    return embedder;
  } catch (error) {
    log.warn({ err: error, place: url ?? directory }, 'the embedding model cannot be opened');
    return undefined;
  }
}
