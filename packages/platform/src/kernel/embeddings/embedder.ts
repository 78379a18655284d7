import { ModelError } from '../models/index.ts';

/** Turns text into vectors whose nearness is nearness of meaning. */
export interface Embedder {
  /** Names the model: vectors of different names are never compared. */
  model: string;
  dimensions: number;
  /** One unit-length vector for each text, in order. Rejects when the model cannot be reached or the signal aborts. */
  embed(texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]>;
  close(): Promise<void>;
}

/** The vector of a model's answer at length 1. Throws `ModelError` for what is none, or has no direction. */
export function vectorOf(values: unknown): Float32Array {
  if (Array.isArray(values) && values.length > 0 && values.every((value) => typeof value === 'number')) {
    const vector = unitVector(values);
    // Also of numbers that are too large for 32 bits.
    if (vector.every(Number.isFinite) && vector.some((value) => value !== 0)) return vector;
  }
  throw new ModelError('the embedding model gave something that is not a vector', { kind: 'refused' });
}

/** The vector at length 1, so that the dot product is the cosine. */
export function unitVector(values: ArrayLike<number>): Float32Array {
  const vector = Float32Array.from(values);
  let sum = 0;
  for (const value of vector) sum += value * value;
  const length = Math.sqrt(sum);
  return length > 0 ? vector.map((value) => value / length) : vector;
}
