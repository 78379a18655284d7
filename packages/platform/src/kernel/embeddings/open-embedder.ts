import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../clock.ts';
import { modelEndpoint } from '../models/index.ts';
import type { Outbound } from '../outbound/index.ts';
import type { Preparations } from '../preparations.ts';
import { openBedrockEmbedder } from './bedrock-embedder.ts';
import type { Embedder } from './embedder.ts';
import { fetchedModel } from './fetched-model.ts';
import { openHttpEmbedder } from './http-embedder.ts';
import { type LocalEmbedderOptions, openLocalEmbedder } from './local-embedder.ts';

/** Opens the embedding model that is set up; rejects when it cannot be used now. */
export type OpenEmbedder = (signal: AbortSignal) => Promise<Embedder>;

/** What the configuration says of embedding models. */
export interface EmbedderConfig {
  /** The data directory. */
  data: string;
  embeddings: {
    fetch: 'on' | 'off';
    directory?: string | undefined;
    url?: string | undefined;
    api: 'openai' | 'bedrock';
    model: string;
    key?: string | undefined;
  };
}

export interface EmbedderDeps {
  ownOutbound: Outbound;
  preparations: Preparations;
  cache: { path: string };
  clock: Clock;
}

/**
 * How to open the embedding model that is searched with: the endpoint or the directory that the configuration names, `models/embedding`
 * in the data directory when there is one, or the one that the platform fetches. Undefined when it must not. Each that is opened has a process
 * of its own where the model is local; `process` says how it runs.
 */
export function embedderOf(
  { data, embeddings }: EmbedderConfig,
  deps: EmbedderDeps,
  process: Pick<LocalEmbedderOptions, 'threads' | 'textsAtOnce' | 'yields'> = {},
): OpenEmbedder | undefined {
  const { url, api, model, key } = embeddings;
  const { clock } = deps;
  if (url !== undefined) {
    const endpoint = modelEndpoint(url, { name: model, key }, deps.ownOutbound);
    return (signal) => (api === 'bedrock' ? openBedrockEmbedder : openHttpEmbedder)(endpoint, signal);
  }
  const own = join(data, 'models', 'embedding');
  const directory = embeddings.directory ?? (existsSync(join(own, 'config.json')) ? own : undefined);
  if (directory !== undefined) return () => openLocalEmbedder({ directory, clock, ...process });
  if (embeddings.fetch === 'off') return undefined;
  const fetching = { cacheDir: deps.cache.path, preparations: deps.preparations };
  return async (signal) => openLocalEmbedder({ directory: await fetchedModel(fetching, signal), clock, ...process });
}
