import type { EmbeddingRequest, Embeddings } from '../model.ts';
import { listAt, type Members, textAt, wrong } from './json-body.ts';

/** Most texts of one request, as OpenAI has it. */
const MOST_TEXTS = 2048;

/** What a body of OpenAI's embeddings asks for. Throws ValidationException for what is not served. */
export function embeddingRequest({ input, dimensions, encoding_format = 'float' }: Members): EmbeddingRequest {
  const texts = typeof input === 'string' ? [input] : listAt(input, 'input').map((one) => textAt(one, 'input'));
  if (texts.length === 0 || texts.length > MOST_TEXTS) throw wrong('input', `must be 1 to ${MOST_TEXTS} texts`);
  if (encoding_format !== 'float' && encoding_format !== 'base64')
    throw wrong('encoding_format', 'must be float or base64');
  if (dimensions === undefined || dimensions === null) return { texts };
  if (typeof dimensions !== 'number') throw wrong('dimensions', 'must be a number');
  return { texts, dimensions };
}

/** The answer to it; vectors in base64 are floats of 32 bits, little-endian. */
export function embeddingAnswer({ vectors, tokens }: Embeddings, model: string, asked: Members): object {
  const coded = asked.encoding_format === 'base64';
  const data = vectors.map((vector, index) => ({
    object: 'embedding',
    index,
    embedding: coded ? Buffer.from(Float32Array.from(vector).buffer).toString('base64') : vector,
  }));
  return { object: 'list', data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}
