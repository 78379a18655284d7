import { type ModelEndpoint, ModelError, postJson } from '../models/index.ts';
import { type Embedder, vectorOf } from './embedder.ts';

const TEXTS_AT_ONCE = 64;

/** A model behind `POST {base}/embeddings`; asked once, to learn how long its vectors are. */
export async function openHttpEmbedder(endpoint: ModelEndpoint, signal?: AbortSignal): Promise<Embedder> {
  const ask = async (input: readonly string[], signal?: AbortSignal): Promise<Float32Array[]> => {
    const { data } = await postJson(endpoint, 'embeddings', { model: endpoint.model, input }, signal);
    const rows: { embedding?: unknown }[] = Array.isArray(data) ? data : [];
    if (rows.length !== input.length)
      throw new ModelError('the embedding model gave another number of vectors than asked for');
    return rows.map((row) => vectorOf(row?.embedding));
  };
  const [sample] = await ask(['dimension'], signal);
  const dimensions = sample?.length ?? 0;
  return {
    model: endpoint.model,
    dimensions,
    async embed(texts, signal) {
      const vectors: Float32Array[] = [];
      for (let start = 0; start < texts.length; start += TEXTS_AT_ONCE) {
        vectors.push(...(await ask(texts.slice(start, start + TEXTS_AT_ONCE), signal)));
      }
      if (vectors.some((vector) => vector.length !== dimensions))
        throw new ModelError('the length of the model’s vectors changed');
      return vectors;
    },
    close: async () => undefined,
  };
}
