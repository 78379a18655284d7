import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../config.ts';
import type { Clock } from '../../kernel/clock.ts';
import { openBedrockEmbedder, openHttpEmbedder, openLocalEmbedder } from '../../kernel/embeddings/index.ts';
import { modelEndpoint } from '../../kernel/models/index.ts';
import type { Outbound } from '../../kernel/outbound/index.ts';
import type { OpenEmbedder } from './late-vector-index.ts';

/**
 * How to open the embedding model that the configuration names: an endpoint, a directory, or `models/embedding` in the data directory
 * when there is one. Undefined when none is set up.
 */
export function embedderOf(
  { data, embeddings }: Config,
  { outbound, clock }: { outbound: Outbound; clock: Clock },
): OpenEmbedder | undefined {
  const { url, api, model, key, directory = join(data, 'models', 'embedding') } = embeddings;
  if (url !== undefined) {
    const endpoint = modelEndpoint(url, { name: model, key }, outbound);
    return (signal) => (api === 'bedrock' ? openBedrockEmbedder : openHttpEmbedder)(endpoint, signal);
  }
  if (embeddings.directory === undefined && !existsSync(join(directory, 'config.json'))) return undefined;
  return () => openLocalEmbedder({ directory, clock });
}
