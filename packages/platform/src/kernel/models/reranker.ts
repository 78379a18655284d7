import { ModelError } from './model-error.ts';
import { type ModelEndpoint, postJson } from './post-json.ts';

/** A model that judges how well texts answer a query. */
export interface Reranker {
  /** One number for each text, in order; higher is better. Throws `ModelError` when there is no usable answer. */
  score(query: string, texts: readonly string[], signal?: AbortSignal): Promise<number[]>;
}

/** A model behind `POST {base}/rerank`, as Cohere, Jina, vLLM, LiteLLM and text-embeddings-inference's Cohere mode serve it. */
export function createReranker(endpoint: ModelEndpoint): Reranker {
  return {
    async score(query, texts, signal) {
      const body = { model: endpoint.model, query, documents: texts, top_n: texts.length };
      const { results } = await postJson(endpoint, 'rerank', body, signal);
      const scores = new Map<number, number>();
      for (const result of Array.isArray(results) ? results : []) {
        const { index, relevance_score: score } = (result ?? {}) as { index?: unknown; relevance_score?: unknown };
        if (typeof index === 'number' && typeof score === 'number' && Number.isFinite(score)) scores.set(index, score);
      }
      return texts.map((_text, index) => {
        const score = scores.get(index);
        if (score === undefined)
          throw new ModelError(`the rerank model did not judge text ${index + 1} of ${texts.length}`);
        return score;
      });
    },
  };
}
