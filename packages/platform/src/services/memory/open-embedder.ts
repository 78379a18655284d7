import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../../config.ts';
import type { Clock } from '../../kernel/clock.ts';
import {
  fetchedModel,
  openBedrockEmbedder,
  openHttpEmbedder,
  openLocalEmbedder,
} from '../../kernel/embeddings/index.ts';
import { modelEndpoint } from '../../kernel/models/index.ts';
import type { Outbound } from '../../kernel/outbound/index.ts';
import type { Preparations } from '../../kernel/preparations.ts';
import type { OpenEmbedder } from './late-vector-index.ts';

export interface EmbedderDeps {
  ownOutbound: Outbound;
  preparations: Preparations;
  cache: { path: string };
  clock: Clock;
}

/**
 * How to open the embedding model that memory searches with: the endpoint or the directory that the configuration names, `models/embedding`
 * in the data directory when there is one, or the one that the platform fetches. Undefined when it must not.
 */
export function embedderOf({ data, embeddings }: Config, deps: EmbedderDeps): OpenEmbedder | undefined {
  const { url, api, model, key } = embeddings;
  const { clock } = deps;
  if (url !== undefined) {
    const endpoint = modelEndpoint(url, { name: model, key }, deps.ownOutbound);
    return (signal) => (api === 'bedrock' ? openBedrockEmbedder : openHttpEmbedder)(endpoint, signal);
  }
  const own = join(data, 'models', 'embedding');
  const directory = embeddings.directory ?? (existsSync(join(own, 'config.json')) ? own : undefined);
  if (directory !== undefined) return () => openLocalEmbedder({ directory, clock });
  if (embeddings.fetch === 'off') return undefined;
  const fetching = { cacheDir: deps.cache.path, preparations: deps.preparations };
  return async (signal) => openLocalEmbedder({ directory: await fetchedModel(fetching, signal), clock });
}
