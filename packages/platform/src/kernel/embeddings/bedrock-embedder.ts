import { type ModelEndpoint, ModelError, postJson } from '../models/index.ts';
import { type Embedder, vectorOf } from './embedder.ts';

/** Texts that one request takes: Cohere's limit; Titan takes one. */
const COHERE_AT_ONCE = 96;
const TITAN_AT_ONCE = 4;
/** Characters of a text that are looked at: Cohere's limit; Titan's is higher. */
const MAX_CHARACTERS = 2048;
const TITAN_CHARACTERS = 40_000;

/**
 * A model of Amazon Bedrock, by `POST {base}/model/{modelId}/invoke` with a Bedrock API key as bearer token: Titan Text Embeddings
 * (`inputText` in, `embedding` out, one text a request) or Cohere Embed (`texts` in, `embeddings` out). Base is
 * `https://bedrock-runtime.{region}.amazonaws.com`. Asked once, to learn how long its vectors are.
 */
export async function openBedrockEmbedder(endpoint: ModelEndpoint, signal?: AbortSignal): Promise<Embedder> {
  const { model } = endpoint;
  const path = `model/${encodeURIComponent(model)}/invoke`;
  const cohere = /(?:^|\.)cohere\./.test(model);
  const titan = async (text: string, signal?: AbortSignal): Promise<Float32Array> => {
    const body = { inputText: text.slice(0, TITAN_CHARACTERS), ...(model.includes('v2') ? { normalize: true } : {}) };
    return vectorOf((await ask(body, signal)).embedding);
  };
  const many = async (texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]> => {
    const body = { texts: texts.map((text) => text.slice(0, MAX_CHARACTERS)), input_type: 'search_document' };
    const { embeddings } = await ask({ ...body, truncate: 'END' }, signal);
    // A list, or with `embedding_types` one for each type.
    const rows = Array.isArray(embeddings) ? embeddings : (embeddings as { float?: unknown } | undefined)?.float;
    if (!Array.isArray(rows) || rows.length !== texts.length)
      throw new ModelError('the embedding model gave another number of vectors than asked for');
    return rows.map(vectorOf);
  };
  const ask = (body: object, signal?: AbortSignal) => postJson(endpoint, path, body, signal);
  const embed = async (texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]> => {
    const vectors: Float32Array[] = [];
    const size = cohere ? COHERE_AT_ONCE : TITAN_AT_ONCE;
    for (let start = 0; start < texts.length; start += size) {
      const part = texts.slice(start, start + size);
      vectors.push(...(cohere ? await many(part, signal) : await Promise.all(part.map((text) => titan(text, signal)))));
    }
    return vectors;
  };
  const [sample] = await embed(['dimension'], signal);
  const dimensions = sample?.length ?? 0;
  return {
    model,
    dimensions,
    async embed(texts, signal) {
      const vectors = await embed(texts, signal);
      if (vectors.some((vector) => vector.length !== dimensions))
        throw new ModelError('the length of the model’s vectors changed');
      return vectors;
    },
    close: async () => undefined,
  };
}
