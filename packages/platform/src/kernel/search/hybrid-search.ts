import type { Logger } from 'pino';
import { fuse } from './fuse.ts';
import type { Hit } from './hit.ts';

/** Finds texts that have words of a query, best first; a score is the share of the query's weight that a text holds. */
export type WordSearch<Filter> = (filter: Filter, query: string, limit: number) => Promise<Hit[]>;

/** Finds texts by nearness of meaning. `Vector` is whatever form of a vector it compares. */
export interface VectorSearch<Filter, Vector> {
  /** The vector of a query. Rejects when the model cannot be asked, or the signal aborts. */
  embed(text: string, signal: AbortSignal): Promise<Vector>;
  /** The nearest, nearest first; the score is the cosine. */
  search(filter: Filter, vector: Vector, limit: number): Promise<Hit[]>;
  /** The cosines of these, of those that have a vector. */
  cosines(ids: readonly string[], vector: Vector): Promise<Map<string, number>>;
}

export interface HybridSearchDeps<Filter, Vector> {
  words: WordSearch<Filter>;
  /** As long as there is none, search is by words alone. */
  vectors?: { readonly current: VectorSearch<Filter, Vector> | undefined };
  log: Logger;
}

/** Hits of each kind that are fused: more than are given back, since the best of both need not be the best of one. */
const POOL = 50;
const EMBED_TIMEOUT_MS = 5_000;

/** Search by words and by meaning in whatever holds the texts: a table of the database, or a list in memory. */
export class HybridSearch<Filter, Vector> {
  readonly #deps: HybridSearchDeps<Filter, Vector>;

  constructor(deps: HybridSearchDeps<Filter, Vector>) {
    this.#deps = deps;
  }

  /** At most `topK`, best first; by words alone when the model does not answer within five seconds. */
  async search(filter: Filter, query: string, topK: number): Promise<Hit[]> {
    return (await this.find(filter, query, topK)).hits;
  }

  /** As `search`, and whether it was by words alone. */
  async find(filter: Filter, query: string, topK: number): Promise<{ hits: Hit[]; byWords: boolean }> {
    const { log } = this.#deps;
    const vectors = this.#deps.vectors?.current;
    const pool = Math.max(POOL, topK * 2);
    const words = this.#deps.words(filter, query, pool);
    if (!vectors) return { hits: (await words).slice(0, topK), byWords: true };
    const [byWords, near] = await Promise.all([
      words,
      nearest(vectors, filter, query, pool).catch((error: unknown) => {
        log.warn({ err: error }, 'the embedding model failed; this search is by words alone');
        return undefined;
      }),
    ]);
    if (!near) return { hits: byWords.slice(0, topK), byWords: true };
    const missing = byWords.map(({ id }) => id).filter((id) => !near.hits.some((hit) => hit.id === id));
    const cosines = missing.length === 0 ? new Map<string, number>() : await vectors.cosines(missing, near.vector);
    return { hits: fuse(byWords, near.hits, cosines).slice(0, topK), byWords: false };
  }
}

async function nearest<Filter, Vector>(
  vectors: VectorSearch<Filter, Vector>,
  filter: Filter,
  query: string,
  limit: number,
): Promise<{ vector: Vector; hits: Hit[] }> {
  const vector = await vectors.embed(query, AbortSignal.timeout(EMBED_TIMEOUT_MS));
  return { vector, hits: await vectors.search(filter, vector, limit) };
}
