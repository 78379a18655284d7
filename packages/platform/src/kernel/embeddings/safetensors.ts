/** One tensor of a safetensors file. */
export interface Tensor {
  shape: number[];
  /** Little-endian 32-bit floats. */
  bytes: Uint8Array;
}

const MAX_HEADER = 10_000_000;

/**
 * Reads the float32 tensors of a safetensors file (8 bytes header length, JSON header, data). Throws for a file of any
 * other shape; tensors of other types are left out.
 */
export function readSafetensors(file: Uint8Array): Map<string, Tensor> {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const size = file.byteLength >= 8 ? Number(view.getBigUint64(0, true)) : Number.POSITIVE_INFINITY;
  if (size > MAX_HEADER || 8 + size > file.byteLength)
    throw new Error('no safetensors file: its header has no sensible length');
  const header: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(file.subarray(8, 8 + size)));
  if (typeof header !== 'object' || header === null) throw new Error('no safetensors file: its header is no object');
  const data = file.subarray(8 + size);
  const tensors = new Map<string, Tensor>();
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__' || !isFloatEntry(entry)) continue;
    const [start, end] = entry.data_offsets;
    const length = entry.shape.reduce((product, dimension) => product * dimension, 4);
    if (start < 0 || end > data.byteLength || end - start !== length)
      throw new Error(`the tensor ${name} lies outside the file`);
    tensors.set(name, { shape: entry.shape, bytes: data.subarray(start, end) });
  }
  return tensors;
}

function isFloatEntry(entry: unknown): entry is { shape: number[]; data_offsets: [number, number] } {
  if (typeof entry !== 'object' || entry === null || !('dtype' in entry) || entry.dtype !== 'F32') return false;
  const numbers = (value: unknown): boolean =>
    Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
  return 'shape' in entry && numbers(entry.shape) && 'data_offsets' in entry && numbers(entry.data_offsets);
}
