/** Turns text into vectors whose nearness is nearness of meaning. */
export interface Embedder {
  /** Names the model: vectors of different names are never compared. */
  model: string;
  dimensions: number;
  /** One unit-length vector for each text, in order. Rejects when the model cannot be reached or the signal aborts. */
  embed(texts: readonly string[], signal?: AbortSignal): Promise<Float32Array[]>;
  close(): Promise<void>;
}

/** The vector at length 1, so that the dot product is the cosine. */
export function unitVector(values: ArrayLike<number>): Float32Array {
  const vector = Float32Array.from(values);
  let sum = 0;
  for (const value of vector) sum += value * value;
  const length = Math.sqrt(sum);
  return length > 0 ? vector.map((value) => value / length) : vector;
}
