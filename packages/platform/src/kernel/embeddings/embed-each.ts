import { ModelError } from '../models/index.ts';
import type { Embedder } from './embedder.ts';

/**
 * One vector for each text, undefined for a text that the model refuses while it takes another: it would keep all that come after it
 * waiting. Rejects when the model cannot be asked, or takes nothing at all.
 */
export async function embedEach(
  embedder: Pick<Embedder, 'embed'>,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<(Float32Array | undefined)[]> {
  const vectors = await halved(embedder, texts, signal);
  // Is it the texts, or the model?
  if (vectors.every((vector) => vector === undefined)) await embedder.embed(['dimension'], signal);
  return vectors;
}

async function halved(
  embedder: Pick<Embedder, 'embed'>,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<(Float32Array | undefined)[]> {
  try {
    return await embedder.embed(texts, signal);
  } catch (error) {
    if (!(error instanceof ModelError && error.refused)) throw error;
    if (texts.length === 1) return [undefined];
    const middle = Math.ceil(texts.length / 2);
    return [
      ...(await halved(embedder, texts.slice(0, middle), signal)),
      ...(await halved(embedder, texts.slice(middle), signal)),
    ];
  }
}
