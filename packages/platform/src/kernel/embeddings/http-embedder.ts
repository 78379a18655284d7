import { type ModelEndpoint, ModelError, postJson } from '../models/index.ts';
import { type Embedder, unitVector } from './embedder.ts';

const TEXTS_AT_ONCE = 64;

/** A model behind `POST {base}/embeddings`; asked once at the start, to learn how long its vectors are. */
export async function openHttpEmbedder(endpoint: ModelEndpoint): Promise<Embedder> {
  const ask = async (input: readonly string[], signal?: AbortSignal): Promise<Float32Array[]> => {
    const answer = (await postJson(endpoint, 'embeddings', { model: endpoint.model, input }, signal)) as {
      data?: unknown;
    };
    const rows = Array.isArray(answer.data) ? answer.data : [];
    const vectors = rows.map((row: { embedding?: unknown }) => {
      const values = row.embedding;
      const sound = Array.isArray(values) && values.length > 0 && values.every((value) => Number.isFinite(value));
      if (!sound) throw new ModelError('the embedding model gave something that is no vector');
      return unitVector(values);
    });
    if (vectors.length !== input.length)
      throw new ModelError('the embedding model gave another number of vectors than asked for');
    return vectors;
  };
  const [sample] = await ask(['dimension']);
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
